"""A change of a money setting raises the shop's policy version, whoever made the change."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION accounts_shop_policy_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Never lower: a stale copy of the row may be saved over a newer one.
    NEW.policy_version := GREATEST(NEW.policy_version, OLD.policy_version);
    IF (NEW.currency, NEW.staff_limit, NEW.staff_also_for_cancel, NEW.refund_window_days,
        NEW.countries_served, NEW.customer_approval_seconds, NEW.staff_approval_seconds)
       IS DISTINCT FROM
       (OLD.currency, OLD.staff_limit, OLD.staff_also_for_cancel, OLD.refund_window_days,
        OLD.countries_served, OLD.customer_approval_seconds, OLD.staff_approval_seconds)
    THEN
        NEW.policy_version := GREATEST(NEW.policy_version, OLD.policy_version + 1);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER accounts_shop_policy_version BEFORE UPDATE ON accounts_shop
    FOR EACH ROW EXECUTE FUNCTION accounts_shop_policy_version();
"""

REVERSE = """
DROP TRIGGER accounts_shop_policy_version ON accounts_shop;
DROP FUNCTION accounts_shop_policy_version();
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, REVERSE)]
