"""Every page of the console, each with the right that it needs.

Mounted under /console/; the admin site under /console/admin/ is for superusers alone.
"""

from django.contrib.auth.views import LogoutView
from django.urls import path, register_converter
from django.urls.converters import IntConverter

from accounts.console import Right, may_unredact
from accounts.views import people, security, sensitive, shop_secrets, shop_settings, sign_in
from agents.console import canned_views as canned
from agents.console import customers, dashboard, desk, habits, prompt_versions, tasks, tickets
from agents.console.conversation import conversation_of
from approvals import attention_views as attention
from approvals import inbox_views as inbox
from approvals import views as approvals
from audit import export_views as exports
from audit import views as audit
from config import looks
from config.guards import action, page
from tools import views as switches
from tools.switches import states_of

app_name = "console"


class BigInt(IntConverter):
    """An id that fits a BIGINT; a longer number is the address of nothing."""

    regex = "[0-9]{1,18}"


register_converter(BigInt, "bigint")

urlpatterns = [
    path("login/", sign_in.SignIn.as_view(), name="login"),
    path("login/code/", sign_in.code, name="login-code"),
    path("logout/", LogoutView.as_view(next_page="console:login"), name="logout"),
    page("", inbox.queue, needs=Right.READ, name="queue"),
    action("approvals/several/", inbox.several, needs=Right.DECIDE, name="several"),
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
    action("approvals/<uuid:public_id>/watch/", inbox.watch, needs=Right.WORK, name="watch"),
    action("approvals/<uuid:public_id>/handle/", inbox.handle, needs=Right.DECIDE, name="handle"),
    page("tickets/", tickets.ticket_list, needs=Right.READ, name="tickets"),
    page("tickets/<bigint:ticket_id>/", tickets.ticket, needs=Right.READ, name="ticket"),
    action(
        "tickets/<bigint:ticket_id>/take-over/",
        tickets.take_over,
        needs=Right.WORK,
        name="take-over",
    ),
    action(
        "tickets/<bigint:ticket_id>/give-back/",
        tickets.give_back,
        needs=Right.WORK,
        name="give-back",
    ),
    action("tickets/<bigint:ticket_id>/reply/", tickets.reply, needs=Right.WORK, name="reply"),
    action("tickets/<bigint:ticket_id>/note/", tickets.note, needs=Right.WORK, name="note"),
    page("answers/", canned.overview, needs=Right.READ, name="canned"),
    action("answers/save/", canned.save, needs=Right.TEXTS, name="save-canned"),
    action(
        "answers/<bigint:reply_id>/remove/",
        canned.remove,
        needs=Right.TEXTS,
        name="remove-canned",
    ),
    action("views/save/", habits.save_view, needs=Right.READ, name="save-view"),
    action(
        "views/<bigint:view_id>/forget/", habits.forget_view, needs=Right.READ, name="forget-view"
    ),
    page("attention/", attention.overview, needs=Right.READ, name="attention"),
    action("attention/save/", attention.save, needs=Right.TEXTS, name="save-attention"),
    page("keys/", habits.keys, needs=Right.READ, name="keys"),
    action("keys/switch/", habits.switch_keys, needs=Right.READ, name="switch-keys"),
    action(
        "tickets/<bigint:ticket_id>/reason/",
        looks.explain,
        needs=Right.READ,
        name="explain",
        is_reason=True,
    ),
    action(
        "customers/<bigint:customer_id>/reason/",
        looks.explain,
        needs=Right.KEEP,
        name="explain-customer",
        is_reason=True,
    ),
    page("tasks/<bigint:task_id>/", tasks.task, needs=Right.READ, name="task"),
    action("tasks/<bigint:task_id>/flag/", tasks.flag, needs=Right.WORK, name="flag"),
    action(
        "tasks/<bigint:task_id>/flags/<bigint:flag_id>/close/",
        tasks.close_flag,
        needs=Right.WORK,
        name="close-flag",
    ),
    page("tasks/<bigint:task_id>/log.json", tasks.log, needs=Right.READ, name="task-log"),
    page("tasks/<bigint:task_id>/steps/<bigint:n>/", tasks.step, needs=Right.READ, name="step"),
    page("prompts/", prompt_versions.overview, needs=Right.READ, name="prompts"),
    page("dashboard/", dashboard.dashboard, needs=Right.READ, name="dashboard"),
    page("desk/", desk.overview, needs=Right.READ, name="desk"),
    page("desk/<bigint:operation_id>/", desk.operation, needs=Right.READ, name="desk-operation"),
    action("desk/<bigint:operation_id>/check/", desk.check, needs=Right.WORK, name="desk-check"),
    action(
        "desk/<bigint:operation_id>/settle/", desk.settle, needs=Right.DECIDE, name="desk-settle"
    ),
    action(
        "desk/<bigint:operation_id>/confirm/", desk.confirm, needs=Right.DECIDE, name="desk-confirm"
    ),
    action(
        "desk/<bigint:operation_id>/turn-down/",
        desk.turn_down,
        needs=Right.DECIDE,
        name="desk-turn-down",
    ),
    action(
        "desk/<bigint:operation_id>/close-case/",
        desk.close_case,
        needs=Right.DECIDE,
        name="desk-close-case",
    ),
    page("customers/", customers.overview, needs=Right.KEEP, name="customers"),
    page("customers/<bigint:customer_id>/", customers.customer, needs=Right.KEEP, name="customer"),
    action(
        "customers/<bigint:customer_id>/copy/",
        customers.copy,
        needs=Right.KEEP,
        name="customer-copy",
    ),
    action(
        "customers/<bigint:customer_id>/hold/",
        customers.hold,
        needs=Right.KEEP,
        name="customer-hold",
    ),
    action(
        "customers/<bigint:customer_id>/lift/",
        customers.lift,
        needs=Right.KEEP,
        name="customer-lift",
    ),
    action(
        "customers/<bigint:customer_id>/erase/",
        customers.erase,
        needs=Right.KEEP,
        name="customer-erase",
    ),
    page("switches/", switches.overview, needs=Right.SWITCH, name="switches"),
    action("switches/turn/", switches.turn, needs=Right.SWITCH, name="turn"),
    page("security/", security.overview, needs=Right.READ, name="security"),
    action("security/begin/", security.begin, needs=Right.READ, name="factor-begin"),
    action("security/confirm/", security.confirm, needs=Right.READ, name="factor-confirm"),
    action("security/codes/", security.renew_codes, needs=Right.READ, name="factor-codes"),
    action("security/remove/", security.remove, needs=Right.READ, name="factor-remove"),
    action("security/sessions/", security.sign_out_others, needs=Right.READ, name="sessions"),
    action("security/password/", security.change_password, needs=Right.READ, name="password"),
    page("settings/", shop_settings.overview, needs=Right.CONFIGURE, name="settings"),
    page("settings/people/", people.overview, needs=Right.CONFIGURE, name="people"),
    action(
        "settings/people/<bigint:user_id>/reset/",
        people.reset_factor,
        needs=Right.CONFIGURE,
        name="factor-reset",
    ),
    page(
        "settings/<bigint:shop_id>/",
        shop_settings.shop,
        needs=Right.CONFIGURE,
        name="shop-settings",
        switches_of=states_of,
    ),
    action(
        "settings/<bigint:shop_id>/change/",
        shop_settings.change,
        needs=Right.CONFIGURE,
        name="shop-change",
        switches_of=states_of,
    ),
    action(
        "settings/<bigint:shop_id>/changes/<bigint:change_id>/confirm/",
        shop_settings.confirm,
        needs=Right.CONFIGURE,
        name="change-confirm",
        switches_of=states_of,
    ),
    action(
        "settings/<bigint:shop_id>/changes/<bigint:change_id>/turn-down/",
        shop_settings.turn_down,
        needs=Right.CONFIGURE,
        name="change-turn-down",
        switches_of=states_of,
    ),
    page(
        "settings/<bigint:shop_id>/sensitive/",
        sensitive.overview,
        needs=Right.CONFIGURE,
        name="sensitive",
    ),
    action(
        "settings/<bigint:shop_id>/sensitive/mark/",
        sensitive.mark,
        needs=Right.CONFIGURE,
        name="customer-mark",
    ),
    page(
        "settings/<bigint:shop_id>/secrets/",
        shop_secrets.overview,
        needs=Right.CONFIGURE,
        name="shop-secrets",
    ),
    action(
        "settings/<bigint:shop_id>/secrets/add/",
        shop_secrets.add,
        needs=Right.CONFIGURE,
        name="secret-add",
    ),
    action(
        "settings/<bigint:shop_id>/secrets/retire/",
        shop_secrets.retire,
        needs=Right.CONFIGURE,
        name="secret-retire",
    ),
    page("audit/", audit.browse, needs=Right.READ, name="audit"),
    page("audit/<bigint:event_id>/", audit.event, needs=Right.READ, name="event"),
    page("audit/public-key.pem", exports.public_key, needs=Right.EXPORT, name="public-key"),
    page("audit/verify_export.py", exports.verifier, needs=Right.EXPORT, name="verifier"),
    page("audit/exports/", exports.overview, needs=Right.EXPORT, name="exports"),
    action(
        "audit/export/",
        exports.ask,
        needs=Right.EXPORT,
        name="export",
        may_unredact=may_unredact,
    ),
    page("audit/exports/<uuid:export_id>/", exports.show, needs=Right.EXPORT, name="export-state"),
    action(
        "audit/exports/<uuid:export_id>/download/",
        exports.download,
        needs=Right.EXPORT,
        name="export-download",
    ),
    action(
        "audit/exports/<uuid:export_id>/stop/",
        exports.stop,
        needs=Right.EXPORT,
        name="export-stop",
    ),
]
