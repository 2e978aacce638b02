"""The task record as a state machine: invariants that hold after any sequence of operations."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mcp_bindgen.extensions.tasks.record import TaskRecord, new_id
from tests.harness.effort import examples

KEYS = st.sampled_from(["name", "age", "name#2", "q"])
QUESTIONS = st.dictionaries(KEYS, st.builds(lambda text: {"method": text}, st.sampled_from("ab")), min_size=1)
JSON = st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5), max_size=3)


class Life(RuleBasedStateMachine):
    """Task record, and the states of this task that clients have seen."""

    @initialize(reruns=st.integers(0, 2), ttl=st.none() | st.integers(1, 100), params=JSON)
    def create(self, reruns: int, ttl: int | None, params: dict[str, Any]) -> None:
        self.now = 1000
        self.record = TaskRecord(
            id=new_id(), revision="x", method="m", params=params, created=1000, updated=1000, ttl=ttl, reruns=reruns
        )
        self.seen, self.taken, self.begun = dict[str, Any](), dict[str, Any](), 0

    def put(self, following: TaskRecord) -> None:
        assert not self.record.is_over
        if following is not self.record:
            assert following.version == self.record.version + 1
            assert following.updated >= self.record.updated
        self.record = following

    @precondition(lambda self: not self.record.is_over)
    @rule(passed=st.integers(-5, 50))
    def begin(self, passed: int) -> None:
        self.now += passed  # clocks may go back
        self.put(self.record.begun(self.now))
        self.begun += not self.record.is_over
        assert self.record.is_over or not self.record.open

    @precondition(lambda self: not self.record.is_over and self.record.runs)
    @rule(questions=QUESTIONS)
    def ask(self, questions: dict[str, Any]) -> None:
        self.put(self.record.asking(self.now, questions))
        keys = self.record.keys_of(questions)
        assert (keys.keys(), len(set(keys.values()))) == (questions.keys(), len(keys))
        for key, wire in keys.items():
            assert self.record.asked[wire] == questions[key]
            assert wire in self.record.open or wire in self.record.answers
        assert self.record.asking(self.now, questions).asked == self.record.asked

    @precondition(lambda self: not self.record.is_over)
    @rule(answers=st.dictionaries(KEYS, st.integers()))
    def answer(self, answers: dict[str, int]) -> None:
        before = self.record
        self.put(self.record.answered(self.now, answers))
        new = {key: value for key, value in answers.items() if key in before.asked and key not in before.answers}
        assert self.record.answers == {**before.answers, **new}

    @precondition(lambda self: not self.record.is_over and self.record.runs)
    @rule()
    def stop_the_server(self) -> None:
        may_go_on = self.record.reruns > 0
        self.put(self.record.given_back(self.now))
        self.begun -= may_go_on
        assert self.record.is_over != may_go_on

    @precondition(lambda self: not self.record.is_over)
    @rule(message=st.text(max_size=3))
    def tell(self, message: str) -> None:
        self.put(self.record.reported(self.now, message))

    @precondition(lambda self: not self.record.is_over)
    @rule(how=st.sampled_from(["completed", "failed", "cancelled"]), result=JSON)
    def end(self, how: str, result: dict[str, Any]) -> None:
        ends = {"completed": self.record.completed(self.now, result), "cancelled": self.record.cancelled(self.now)}
        ends["failed"] = self.record.failed(self.now, -32603, "no", result or None)
        self.put(ends[how])
        assert self.record.status == how
        assert self.record.is_over

    @rule()
    def look(self) -> None:
        """Check the invariants: a task that is over does not change."""

    @invariant()
    def questions_are_open_exactly_where_input_is_required(self) -> None:
        record = self.record
        assert (record.status == "input_required") == bool(record.open)
        assert set(record.open) <= set(record.asked) - set(record.answers)
        assert len(set(record.open)) == len(record.open)
        assert set(record.answers) <= set(record.asked)

    @invariant()
    def a_key_means_one_question_and_has_one_answer_for_ever(self) -> None:
        for known, now in ((self.seen, self.record.asked), (self.taken, self.record.answers)):
            assert known.items() <= now.items()
            known.update(now)

    @invariant()
    def it_runs_no_more_often_than_it_may(self) -> None:
        assert 0 <= self.begun == self.record.runs <= self.record.reruns + 1

    @invariant()
    def its_outcome_fits_its_status(self) -> None:
        assert (self.record.result is not None) == (self.record.status == "completed")
        assert (self.record.error is not None) == (self.record.status == "failed")

    @invariant()
    def it_survives_being_stored(self) -> None:
        assert TaskRecord.load(self.record.data) == self.record


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=examples(12, 120), stateful_step_count=20)


def test_unknown_fields_of_a_newer_version_are_ignored() -> None:
    record = TaskRecord(id=new_id(), revision="x", method="m", created=1, updated=1)
    assert TaskRecord.load(record.data[:-1] + b',"future":1}') == record


def test_ids_cannot_be_guessed() -> None:
    ids = {new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(id) == 43 and id.isascii() and id.replace("-", "").replace("_", "").isalnum() for id in ids)
