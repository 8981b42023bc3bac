"""Every page of the console, each with the right that it needs.

Mounted under /console/; the admin site under /console/admin/ is for superusers alone.
"""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from accounts.console import Right
from agents.console.conversation import conversation_of
from approvals import views as approvals
from config.guards import action, page

app_name = "console"

urlpatterns = [
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(next_page="console:login"), name="logout"),
    page("", approvals.queue, needs=Right.READ, name="queue"),
    page(
        "approvals/<uuid:public_id>/",
        approvals.question,
        needs=Right.READ,
        name="approval",
        conversation_of=conversation_of,
    ),
    action(
        "approvals/<uuid:public_id>/decide/",
        approvals.decide,
        needs=Right.DECIDE,
        name="decide",
        conversation_of=conversation_of,
    ),
]
