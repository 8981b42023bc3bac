"""The widget's addresses."""

from django.urls import path

from agents import views

urlpatterns = [
    path("widget.js", views.loader, name="widget-loader"),
    path("widget/", views.widget, name="widget"),
    path("widget/exchange", views.exchange, name="widget-exchange"),
]
