//go:build unix

package durable_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/flow"
)

type decision struct {
	Amount int    `json:"amount"`
	Note   string `json:"note,omitempty"`
}

// awaitApproval returns the only open approval of a task.
func awaitApproval(t *testing.T, e *troupe.Engine, id string) (a troupe.Approval) {
	t.Helper()
	require.Eventually(t, func() bool {
		page, err := e.Approvals(t.Context(), troupe.ApprovalQuery{Task: id})
		if err != nil || len(page.Items) != 1 {
			return false
		}
		a = page.Items[0]
		return true
	}, patience, 5*time.Millisecond)
	return a
}

func TestPersonAnswersByAForm(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		troupe.HandleFlow(e, "order", func(f *durable.Flow, in input) (decision, error) {
			return durable.Ask[decision](f, "large order", durable.Text("May this be bought?"),
				durable.Show("who", in.Name), durable.Show("an offer of 3", map[string]int{"price": 9000}),
				durable.Assign("ada", "bob"), durable.Within(time.Hour))
		})
		id, err := e.Start(t.Context(), "order", input{"carl"})
		require.NoError(t, err)
		a := awaitApproval(t, e, id)
		details, err := e.Approval(t.Context(), a.ID)
		require.NoError(t, err)
		question, err := json.Marshal(details)
		require.NoError(t, err)
		for _, part := range []string{`"title":"large order"`, `"text":"May this be bought?"`, `"assignees":["ada","bob"]`,
			`"name":"who","ref":"$params.values.value1","value":"carl"`,
			`"name":"an offer of 3","ref":"$params.values.value2","value":{"price":9000}`, `"amount":{"type":"integer"}`} {
			require.Contains(t, string(question), part)
		}
		require.Less(t, strings.Index(string(question), `"who"`), strings.Index(string(question), `"an offer of 3"`))

		_, err = e.AnswerApproval(t.Context(), a.ID, troupe.ApprovalAnswer{Value: json.RawMessage(`{"amount":"many"}`)})
		require.ErrorContains(t, err, "amount")
		_, err = e.AnswerApproval(t.Context(), a.ID, troupe.ApprovalAnswer{Action: "approved"})
		require.ErrorContains(t, err, "the approval is answered by a form")
		_, err = e.AnswerApproval(t.Context(), a.ID, troupe.ApprovalAnswer{Value: json.RawMessage(`{"amount":7}`)})
		require.NoError(t, err)
		requireResult(t, e, id, `{"amount":7}`)
	})
}

func TestQuestionsThatCannotBeShownFailTheFunction(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		for i, c := range []struct {
			option durable.Option
			says   string
		}{
			{durable.Text(strings.Repeat("x", 10_001)), "the wait buy: its question: text: must be UTF-8 text of at most 10000 bytes"},
			{durable.Assign(""), "the wait buy: its question: assignees.[0]: must be a text of 1 to"},
		} {
			order := fmt.Sprint("order", i)
			troupe.HandleFlow(e, order, func(f *durable.Flow, _ input) (bool, error) { return durable.Approve(f, "buy", c.option) })
			id, err := e.Start(t.Context(), order, input{"carl"})
			require.NoError(t, err)
			result, err := e.Wait(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, flow.TaskFailed, result.Status)
			require.Contains(t, result.Error, c.says)
		}
	})
}
