from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0010_ticket_locale")]

    operations = [
        migrations.AddField(
            model_name="task",
            name="traceparent",
            field=models.CharField(blank=True, db_default="", default="", max_length=55),
        ),
        migrations.AddField(
            model_name="task",
            name="traceparent_resumed",
            field=models.CharField(blank=True, db_default="", default="", max_length=55),
        ),
    ]
