"""Every door of the web process."""

from django.contrib import admin
from django.urls import path

urlpatterns = [
    path("console/admin/", admin.site.urls),
]
