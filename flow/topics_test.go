package flow_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// TestTopicsEndAsTheyShould runs one flow for each topic of the graph form to its end.
func TestTopicsEndAsTheyShould(t *testing.T) {
	for _, tt := range []struct {
		topic, params, signals string
		status                 flow.TaskStatus
		shared                 string
	}{
		{"01", `{"val":2}`, ``, flow.TaskCompleted, `{"result":4,"final":6}`},
		{"02", `{"val":2,"path":"B"}`, ``, flow.TaskCompleted, `{"result_b":20}`},
		{"02", `{"val":2,"path":"C"}`, ``, flow.TaskCompleted, `{"result_c":40}`},
		{"03", `{"val":2}`, ``, flow.TaskCompleted, `{"agg":[6,6],"total":12}`},
		{"04", `{"val":2}`, ``, flow.TaskCompleted, `{"agg":[6,6],"total":12}`},
		{"05", `{"list":[1,2,3]}`, ``, flow.TaskCompleted, `{"mapped":[2,4,6],"total":12}`},
		{"06", `{"list":[1,2,3]}`, ``, flow.TaskCompleted, `{"mapped":[2,4,6],"total":12}`},
		{"07", `{"val":2}`, `{"flag":true}`, flow.TaskCompleted, `{"flag":true,"result":2}`},
		{"07", `{"val":2}`, ``, flow.TaskCompleted, `{"result":2}`},
		{"08", `{"val":2,"approval":"approved"}`, ``, flow.TaskCompleted, `{"approved_result":200}`},
		{"08", `{"val":2,"approval":"rejected"}`, ``, flow.TaskCompleted, `{"rejected_result":0}`},
		{"09", `{}`, ``, flow.TaskFailed, `{"sub_out":{}}`},
		{"09", `{"x":2}`, ``, flow.TaskCompleted, `{"sub_out":{"m":10},"final":1000}`},
		{"10", `{"val":2,"path":"approval"}`, `{"approval":"approved","flag":true,"list":[1,2,3]}`, flow.TaskCompleted,
			`{"approval":"approved","flag":true,"list":[1,2,3],"mapped":[2,4,6],"sub_out":{"m":10},"end_out":1000}`},
		{"11", `{"val":2}`, ``, flow.TaskCompleted, `{"out":4}`},
		{"12", `{}`, ``, flow.TaskCompleted, `{"out":{"v":42}}`},
		{"13", `{"val":2}`, ``, flow.TaskCompleted, `{"agg":[4,10]}`},
		{"14", `{"val":2}`, ``, flow.TaskCompleted, `{}`},
		{"15", `{"val":2}`, ``, flow.TaskCompleted, `{"sub_out":{"m":14}}`},
		{"16", `{}`, ``, flow.TaskCompleted,
			`{"result":"[Default Title] ASYNC-PROCESSING","local_out":"[Default Title] ASYNC-PROCESSING"}`},
		{"17", `{}`, ``, flow.TaskCompleted, `{"parallel_results":[null,"ASYNC-PROCESSING (ASYNC PROCESSED)"]}`},
		{"17", `{"text":"hi"}`, ``, flow.TaskCompleted, `{"parallel_results":["HI","ASYNC-PROCESSING (ASYNC PROCESSED)"]}`},
	} {
		t.Run(tt.topic+tt.params+tt.signals, func(t *testing.T) {
			tb := newTable(t, flowtest.Plan(t, topic(t, tt.topic)))
			tb.hands = demoWorker
			_, err := tb.do(flow.Start{Params: json.RawMessage(tt.params)})
			require.NoError(t, err)
			members, _ := expr.Members(json.RawMessage(tt.signals))
			for _, m := range members {
				_, err := tb.do(flow.Signal{Key: m.Key, Value: m.Value})
				require.NoError(t, err)
			}
			for range 20 {
				tb.work()
				tb.wait(100)
			}
			require.Equal(t, tt.status, tb.state.Status, tb.state.Error)
			require.JSONEq(t, tt.shared, string(tb.state.Root.SharedJSON()))
		})
	}
}

func topic(t *testing.T, number string) string {
	files, err := filepath.Glob("testdata/topics/" + number + "-*")
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	return "profile: pocketflow\n" + string(text) // as clients of these flows expect
}

// demoWorker offers the services of the original workers and server.
func demoWorker(j flow.Job) flow.Report {
	r := flow.Report{Address: j.Address}
	text, isText := expr.String(j.Input)
	if !isText {
		text = flow.TextField(j.Params, "text")
	}
	switch name := j.Exec.Service + "/" + j.Exec.Func; {
	case j.Exec.Type == flow.ExecScript:
		r.Output = json.RawMessage(`{"v":42}`)
	case j.Exec.Type == flow.ExecFunc && j.Exec.Func == "log_result":
		r.Output = j.Input
	case j.Exec.Type == flow.ExecFunc && j.Exec.Func == "upper" && text == "":
		r.Error = "failed"
	case j.Exec.Type == flow.ExecFunc && j.Exec.Func == "upper":
		r.Output = expr.Quote(strings.ToUpper(text))
	case j.Exec.Type == flow.ExecQueue:
		r.Output = expr.Quote(shout(j.Input, text))
	case j.Exec.Service == "sum":
		r.Output = sum(j.Input)
	case expr.KindOf(j.Input) != expr.KindNumber:
		r.Error = "bad input"
	case strings.HasPrefix(name, "transform/"), j.Exec.Func == "mul":
		n, _ := expr.Number(j.Input)
		factor, _ := expr.Field(j.Params, "mul")
		m, _ := expr.Number(factor)
		r.Output = number(n * m)
	}
	return r
}

func shout(input json.RawMessage, text string) string {
	if expr.KindOf(input) == expr.KindObject {
		return "[" + flow.TextField(input, "title") + "] " + strings.ToUpper(flow.TextField(input, "text"))
	}
	return strings.ToUpper(text) + " (ASYNC PROCESSED)"
}

func sum(list json.RawMessage) json.RawMessage {
	total := 0.0
	elements, _ := expr.Elements(list)
	for _, e := range elements {
		n, _ := expr.Number(e)
		total += n
	}
	return number(total)
}

func number(n float64) json.RawMessage {
	return json.RawMessage(strconv.FormatFloat(n, 'f', -1, 64))
}
