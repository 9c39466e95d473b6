package v1_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLabelsAndKeysWithInvalidTextAreRefused(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(waits)
		for _, lost := range []string{`\ud800`, `a\udfff`, `\ud800\ud800`, "\ufffd"} {
			for where, start := range map[string]string{
				"body.labels":          `"labels":{"a":"` + lost + `"}`,
				"body.idempotency_key": `"idempotency_key":"` + lost + `"`,
			} {
				told := s.refused(400, where, "POST", "/v1/tasks", `{"flow":"`+slug+`",`+start+`}`)
				require.Contains(s, told["message"], "U+FFFD, which stands for text that was lost")
				batch := items(s.call(200, "POST", "/v1/tasks/starts", `{"starts":[{"flow":"`+slug+`",`+start+`}]}`))
				require.Contains(s, batch[0], "problem")
			}
			s.refused(400, "body.labels", "POST", "/v1/tasks", `{"flow":"`+slug+`","labels":{"`+lost+`":"a"}}`)
		}
		require.Empty(s, items(s.get("/v1/tasks?flow="+slug)), "nothing was started")
		s.call(201, "POST", "/v1/tasks", `{"flow":"`+slug+`","labels":{"a":"\ud83d\ude00"},"idempotency_key":"\ud83d\ude00"}`)
	})
}

func TestNamesWithInvalidTextAreRefused(t *testing.T) {
	s := start(t)
	task := s.task(waits)
	for name, ask := range map[string]struct{ method, path, body string }{
		"a signal":            {"POST", "/v1/tasks/" + task + "/signal", `{"key":"\ud800","value":1}`},
		"a worker's service":  {"PUT", "/v1/workers/w", `{"services":["\ud800"]}`},
		"a worker's label":    {"PUT", "/v1/workers/w", `{"services":["s"],"labels":["\ud800"]}`},
		"a poll":              {"POST", "/v1/workers/w/poll", `{"services":["\ud800"]}`},
		"a node":              {"PUT", "/v1/flows/lost", `{"start":"\ud800","nodes":{"\ud800":{"func":"mul"}}}`},
		"a service of a node": {"PUT", "/v1/flows/lost", `{"start":"a","nodes":{"a":{"service":"\ud800"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			sent := s.send(ask.method, ask.path, ask.body)
			require.Contains(t, string(sent.body), "U+FFFD, which stands for text that was lost")
			require.Contains(t, []int{400, 422}, sent.status)
		})
	}
}

func TestARepeatedStartIsRecognizedByItsValuesNotByTheirSpelling(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(waits)
		start := func(params string) string {
			return `{"flow":"` + slug + `","idempotency_key":"k","params":` + params + `}`
		}
		first := s.call(201, "POST", "/v1/tasks", start(`{"a":1,"b":{"c":100,"d":12345678901234567890}}`))
		for _, again := range []string{`{"b":{"d":12345678901234567890,"c":1e2},"a":1.0}`,
			`{"\u0061":10e-1,"b":{"c":100.00,"d":12345678901234567890.0}}`} {
			require.Equal(s, first["id"], s.call(200, "POST", "/v1/tasks", start(again))["id"])
			batch := items(s.call(200, "POST", "/v1/tasks/starts", `{"starts":[`+start(again)+`]}`))
			require.Equal(s, first["id"], batch[0]["id"])
		}
		for _, other := range []string{`{"a":1,"b":{"c":100,"d":12345678901234567891}}`,
			`{"a":"1","b":{"c":100,"d":12345678901234567890}}`, `{"a":1}`} {
			s.refused(409, "body.idempotency_key", "POST", "/v1/tasks", start(other))
		}
	})
}

func TestARepeatedStartGetsItsTaskAfterAVersionWithOtherInputs(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.unique("inputs")
		s.call(201, "PUT", "/v1/flows/"+slug,
			`{"inputs":{"a":"int"},"start":"w","nodes":{"w":{"kind":"wait_event","params":{"signal_key":"go"}}}}`)
		start := obj{"flow": slug, "params": obj{"a": 1}, "idempotency_key": "k"}
		first := s.call(201, "POST", "/v1/tasks", start)
		s.call(201, "PUT", "/v1/flows/"+slug,
			`{"inputs":{"b":"text"},"start":"w","nodes":{"w":{"kind":"wait_event","params":{"signal_key":"go"}}}}`)
		again := s.call(200, "POST", "/v1/tasks", start)
		require.Equal(s, []any{first["id"], false}, []any{again["id"], again["created"]})
		batch := items(s.call(200, "POST", "/v1/tasks/starts", obj{"starts": []any{start}}))
		require.Equal(s, first["id"], batch[0]["id"])
		s.refused(409, "body.idempotency_key", "POST", "/v1/tasks", obj{"flow": slug, "params": obj{"a": 2}, "idempotency_key": "k"})
		s.refused(422, "body.params", "POST", "/v1/tasks", obj{"flow": slug, "params": obj{"a": 1}, "idempotency_key": "other"})
	})
}
