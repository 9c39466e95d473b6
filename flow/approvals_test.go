package flow_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

const refund = `start: ask
nodes:
  ask:
    kind: approval
    params:
      approval_key: $shared.decision
      title: Refund?
      text: The customer wants the money back.
      show: {amount: $params.amount, customer: who}
      assignees: [ada]
  pay: {kind: timer, params: {delay_ms: 9000}}
  later: {kind: timer, params: {delay_ms: 9000}}
edges: [{from: ask, action: approved, to: pay}, {from: ask, action: later, to: later}]`

func TestAnApprovalShowsItsWholeQuestion(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, refund))
	_, err := tb.do(flow.Start{Params: json.RawMessage(`{"amount":12.50,"title":"another"}`)})
	require.NoError(t, err)
	_, err = tb.do(flow.Signal{Key: "who", Value: json.RawMessage(`"Bo"`)})
	require.NoError(t, err)
	open := tb.state.Approvals()
	require.Len(t, open, 1)
	require.Equal(t, "Refund?", open[0].Title, "what a task is given does not change the question")
	q, ok := tb.state.Question(open[0].Address)
	require.True(t, ok)
	require.Equal(t, []flow.Shown{{Name: "amount", Ref: "$params.amount",
		Value: json.RawMessage("12.50")}, {Name: "customer", Ref: "$shared.who",
		Value: json.RawMessage(`"Bo"`)}}, q.Show)
	require.Equal(t, []string{"ada"}, q.Assignees)
	require.Equal(t, []string{"approved", "rejected", "later"}, q.Actions)
}

func TestAnAnswerDecidesOnceAndRecordsAuthorAndComment(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, refund))
	_, err := tb.do(flow.Start{})
	require.NoError(t, err)
	at := flow.Address{Node: "ask", Visit: 1}
	for _, wrong := range []flow.Answer{{}, {Action: "perhaps"}, {Value: json.RawMessage("null")},
		{Action: "later", Value: json.RawMessage("1")}} {
		wrong.Address = at
		_, err = tb.do(wrong)
		require.Equal(t, flow.Invalid, flow.ErrorKindOf(err), "%+v", wrong)
	}
	d, err := tb.do(flow.Answer{Address: at, Action: "later", By: "ada", Comment: "after lunch"})
	require.NoError(t, err)
	require.Equal(t, []string{"ada", "after lunch"}, []string{d.Events[0].By, d.Events[0].Note})
	require.Equal(t, "later", tb.state.Root.Cursor)
	require.Equal(t, []flow.Approval{{Address: at, Key: "decision", Title: "Refund?",
		Since: d.Approvals[0].Since, State: flow.ApprovalAnswered, EndedAt: d.Events[0].At,
		By: "ada", Comment: "after lunch", Action: "later"}}, d.Approvals)
	_, err = tb.do(flow.Answer{Address: at, Action: "approved", By: "bo"})
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(err))
}

func TestAnAnswerFitsTheFormAndMayLeadOn(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `start: ask
nodes:
  ask:
    kind: approval
    params: {approval_key: $shared.decision, form: {type: object, required: [do], properties: {do: {enum: [pay, wait]}, amount: {type: integer, maximum: 10}}}}
    post: {action_key: do}
  pay: {kind: timer, params: {delay_ms: 9000}}
edges: [{from: ask, action: pay, to: pay}]`))
	_, err := tb.do(flow.Start{})
	require.NoError(t, err)
	at := flow.Address{Node: "ask", Visit: 1}
	q, _ := tb.state.Question(at)
	require.Empty(t, q.Actions)
	_, err = tb.do(flow.Answer{Address: at, Action: "approved"})
	require.ErrorContains(t, err, "answered by a form")
	_, err = tb.do(flow.Answer{Address: at, Value: json.RawMessage(`{"do":"pay","amount":11}`)})
	require.ErrorContains(t, err, "value.amount")
	_, err = tb.do(flow.Answer{Address: at, Value: json.RawMessage(`{"do":"pay","amount":9}`)})
	require.NoError(t, err)
	require.Equal(t, "pay", tb.state.Root.Cursor)
	require.JSONEq(t, `{"do":"pay","amount":9}`, string(tb.state.Root.Shared["decision"]))
}

func TestAnAnswerEndsOnlyItsOwnApproval(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `mode: dag
nodes:
  a: {kind: subflow, flow: {start: ask, nodes: {ask: {kind: approval, params: {approval_key: $shared.ok, title: A}}}}}
  b: {kind: subflow, flow: {start: ask, nodes: {ask: {kind: approval, params: {approval_key: $shared.ok, title: B}}}}}`))
	_, err := tb.do(flow.Start{})
	require.NoError(t, err)
	open := tb.state.Approvals()
	require.Len(t, open, 2)
	d, err := tb.do(flow.Answer{Address: open[1].Address, Action: "approve", By: "bo"})
	require.NoError(t, err)
	require.Len(t, d.Approvals, 1)
	require.Equal(t, open[:1], tb.state.Approvals())
	d, err = tb.do(flow.Cancel{})
	require.NoError(t, err)
	require.Equal(t, flow.ApprovalEnded, d.Approvals[0].State, "nobody decided about the other one")
}

func TestApprovalsWithUnsettableKeysRejectAnswers(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, "profile: pocketflow\nstart: ask\nnodes: {ask: {kind: "+
		"approval, params: {approval_key: $params.ok}}}"))
	_, err := tb.do(flow.Start{})
	require.NoError(t, err)
	_, err = tb.do(flow.Answer{Address: flow.Address{Node: "ask", Visit: 1}, Action: "approved"})
	require.ErrorContains(t, err, "waits for $params.ok, which no answer can set")
}

func TestAnApprovalsIDNamesItsTaskAndIsShort(t *testing.T) {
	at := flow.Address{Scope: "order#1/ship%2F#2", Node: "ask me", Visit: 3}
	require.Equal(t, "task-1.3.b3JkZXIjMS9zaGlwJTJGIzIKYXNrIG1l", flow.ApprovalID("task-1", at))
	deep := at
	deep.Scope = strings.Repeat("order#1/", 400)
	id := flow.ApprovalID("task-1", deep)
	require.Less(t, len(id), 60)
	require.Equal(t, "task-1", flow.ApprovalTask(id))
	deep.Scope += "x"
	require.NotEqual(t, id, flow.ApprovalID("task-1", deep))
}

func TestAnAnswerKeepsTheOtherFieldsOfItsObject(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `mode: dag
nodes:
  legal: {kind: approval, params: {approval_key: $shared.review.legal}}
  tech: {kind: approval, params: {approval_key: $shared.review.of.tech}}`))
	_, err := tb.do(flow.Start{})
	require.NoError(t, err)
	_, err = tb.do(flow.Signal{Key: "review", Value: json.RawMessage(`{"by":"Bo","of":7}`)})
	require.NoError(t, err)
	for _, open := range tb.state.Approvals() {
		_, err = tb.do(flow.Answer{Address: open.Address, Action: "approved"})
		require.NoError(t, err)
	}
	require.JSONEq(t, `{"by":"Bo","of":{"tech":true},"legal":true}`, string(tb.state.Root.Shared["review"]))
}

func TestAnAnswerDoesNotCountForTheNextApproval(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `start: a
nodes:
  a: {kind: approval, params: {approval_key: $shared.a}}
  b: {kind: approval, params: {approval_key: $shared.b}}
edges: [{from: a, action: approved, to: b}]`))
	_, err := tb.do(flow.Start{})
	require.NoError(t, err)
	_, err = tb.do(flow.Signal{Key: "b", Value: json.RawMessage("true"), By: "alice"})
	require.NoError(t, err)
	d, err := tb.do(flow.Answer{Address: flow.Address{Node: "a", Visit: 1}, Action: "approved", By: "bob", Comment: "only about a"})
	require.NoError(t, err)
	require.Len(t, d.Approvals, 2)
	require.Equal(t, []string{"a", "bob", "only about a"}, []string{d.Approvals[0].Node, d.Approvals[0].By, d.Approvals[0].Comment})
	require.Equal(t, []string{"b", "", ""}, []string{d.Approvals[1].Node, d.Approvals[1].By, d.Approvals[1].Comment})
}
