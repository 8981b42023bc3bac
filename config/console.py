"""The console's site: who may enter and what it is called."""

from django.contrib.admin import AdminSite


class ConsoleSite(AdminSite):
    """Django's admin site, as the staff console."""

    site_header = "Countersign"
    site_title = "Countersign console"
    index_title = "Console"
    enable_nav_sidebar = False
