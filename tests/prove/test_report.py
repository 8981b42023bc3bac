"""The table and the closing words: what holds, what broke, and what could not be shown."""

import json

from script.lib.prove.aimed import Aimed
from script.lib.prove.oracle import judge
from script.lib.prove.report import Report, explanation, figures, table
from tests.prove.made_up import KEY, effect, evidence, operation


def report(whole=None, **changes):
    whole = whole or evidence()
    fields = {
        "seed": 7,
        "ablated": "",
        "violations": judge(whole),
        "figures": figures(whole),
        "chain": whole.chain,
        "chain_holds": whole.chain_holds,
        "aimed": [Aimed("fence", arose=True, tries=1, story="it was late")],
    }
    return Report(**fields | changes)


def test_a_run_that_held_says_so_with_its_seed():
    held = report(seconds={"start": 11.6})

    assert held.holds
    assert explanation(held) == "Every promise held (start 12 s; seed 7)."


def test_the_table_counts_what_there_was_and_marks_what_must_not_be():
    twice = evidence(effects=[effect(), effect(id="re_2b")])

    lines = table(report(twice)).splitlines()

    assert any("tasks" in line and "done 1" in line for line in lines)
    assert any("effects" in line and "refund 2" in line for line in lines)
    (marked,) = [line for line in lines if "duplicates" in line]
    assert marked.split()[0] == "1"
    assert marked.endswith("must be 0")
    assert not any("lost:" in line and "must be 0" in line for line in lines)


def test_operations_that_two_of_staff_had_to_approve_are_counted_apart():
    roles = ("customer", "staff", "second_staff")
    both = operation(id=2, key="task-2-step-4", state="rejected", required_roles=roles)

    counted = figures(evidence(operations=[operation(), both]))

    assert counted["two of staff"] == {"rejected": 1}
    assert sum(counted["operations"].values()) == 2


def test_it_tells_how_often_and_how_long_a_scenario_was_tried():
    once, often = Aimed("fence", True, 1, "it came", 12.4), Aimed("window", False, 3, "no", 200.0)

    lines = table(report(aimed=[once, often])).splitlines()

    assert lines[-2:] == [
        "  aimed at fence       it came (1 try, 12 s)",
        "  aimed at window      did not arise: no (3 tries, 200 s)",
    ]


def test_what_broke_is_named_with_operation_key_and_evidence():
    broken = report(evidence(effects=[effect(), effect(id="re_2b")]))

    text = explanation(broken)

    assert not broken.holds
    assert f"duplicate: operation {KEY}: 2 effects under one key" in text
    assert "re_2b" in text


def test_a_situation_that_did_not_arise_shows_nothing_and_so_fails():
    unseen = report(aimed=[Aimed("window", story="waited in vain")])

    assert not unseen.holds
    assert "the situation aimed at window did not arise: waited in vain" in explanation(unseen)


def test_a_door_that_gave_no_answer_fails():
    assert not report(problems=["status, order 1: GET /v1/tasks/1: timeout"]).holds


def test_operations_left_to_a_person_are_counted_and_break_nothing():
    whole = evidence(
        operations=[operation(state="needs_person", misses=1)], effects=[], said=[], shown=[]
    )

    left = report(whole)

    assert left.holds
    assert "1 left to a person" in table(left)


def test_the_json_report_says_the_same():
    twice = report(evidence(effects=[effect(), effect(id="re_2b")]))

    told = json.loads(json.dumps(twice.as_json(), default=str))

    assert told["holds"] is False
    assert told["must_be_zero"]["duplicate"] == len(
        [one for one in told["violations"] if one["kind"] == "duplicate"]
    )
    assert told["seed"] == 7
