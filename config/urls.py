"""Every door of the web process."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from agents.api import docs
from config.metrics import metrics

urlpatterns = [
    path("", include("agents.urls")),
    path("v1/", include("agents.api.urls")),
    path("docs/", docs.reading_page),
    path("docs/problems/", docs.problem_page),
    path("metrics", metrics),
    path("console/admin/", admin.site.urls),
    path("", RedirectView.as_view(pattern_name="console:queue")),
    path("console", RedirectView.as_view(pattern_name="console:queue")),
    path("console/", include("config.console_urls")),
]

# /healthz/live, /healthz/ready and /version are answered by config.health before any of these.

handler400 = "config.errors.bad_request"
handler403 = "config.errors.permission_denied"
handler404 = "config.errors.page_not_found"
handler500 = "config.errors.server_error"
