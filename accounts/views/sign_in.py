"""The console's door: name and password, then a code for whoever has a second factor."""

import time
from typing import Any

from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods
from typing_extensions import override

from accounts import second_factor
from accounts.models import User
from accounts.second_factor import Proof

# In the session of somebody who has given the password and not the code yet. They are nobody still.
HALF = "half_signed_in"
HALF_LIVES = 300  # seconds
RETRY_AFTER = 60
WRONG = "That is no fresh code of your app, and no unused recovery code."
WAIT = "Too many wrong codes. Wait a few minutes, then try again."


class SignIn(LoginView):
    """Name and password. Signs in at once whoever has no second factor."""

    redirect_authenticated_user = True

    @override
    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        user = form.get_user()
        if not second_factor.is_enrolled(user.pk):
            return super().form_valid(form)
        session = self.request.session
        session.cycle_key()
        session[HALF] = {
            "user": user.pk,
            "backend": getattr(user, "backend", ""),
            "hash": user.get_session_auth_hash(),
            "at": int(time.time()),
            "next": self.get_success_url(),
        }
        return redirect("console:login-code")


@sensitive_post_parameters("code")
@never_cache
@csrf_protect
@require_http_methods(["GET", "HEAD", "POST"])
def code(request: HttpRequest) -> HttpResponse:
    """The second step. Without a first one that is younger than five minutes: back to it."""
    half = request.session.get(HALF)
    user = _half_signed_in(half)
    if half is None or user is None:
        request.session.pop(HALF, None)
        return redirect("console:login")
    if request.method != "POST":
        return render(request, "registration/code.html")
    given = request.POST.get("code", "")[:100]
    proof = second_factor.prove(user_id=user.pk, code=given, now=timezone.now(), with_recovery=True)
    if proof == Proof.RIGHT:
        del request.session[HALF]
        login(request, user, backend=half["backend"])
        return redirect(half["next"])
    is_wait = proof == Proof.WAIT
    context = {"refusal": WAIT if is_wait else WRONG}
    answer = render(request, "registration/code.html", context, status=429 if is_wait else 403)
    if is_wait:
        answer.headers["Retry-After"] = str(RETRY_AFTER)
    return answer


def _half_signed_in(half: Any) -> User | None:
    """Whoever gave their password just now, if it is still theirs and they may still come in."""
    if not isinstance(half, dict) or not 0 <= time.time() - half["at"] < HALF_LIVES:
        return None
    user = User.objects.filter(pk=half["user"], is_active=True).first()
    if user is None or not constant_time_compare(half["hash"], user.get_session_auth_hash()):
        return None
    return user
