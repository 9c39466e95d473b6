package v1_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

// A client that accepts other types besides JSON is served by the framework, whatever the request.
func TestAFastRouteAnswersAsTheFrameworkDoes(t *testing.T) {
	s := start(t)
	slug := s.publish(waits)
	queue := s.publish(`{"start":"a","nodes":{"a":{"exec_type":"queue","service":"x"}}}`)
	uuids := regexp.MustCompile(
		`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|"20\d\d-[^"]*Z"|"request_id":"[^"]*"|[0-9a-f]{32}(-[0-9a-f]{16})?`)
	ask := func(path, body, accept string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", accept)
		resp, err := s.http.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		for _, h := range []string{"Date", "Content-Length", "X-Request-Id"} {
			resp.Header.Del(h)
		}
		var headers strings.Builder
		require.NoError(t, resp.Header.Write(&headers))
		return uuids.ReplaceAllString(resp.Status+"\n"+headers.String()+"\n"+string(answer), "…")
	}
	const tasks, starts, poll, reports = "/v1/tasks", "/v1/tasks/starts", "/v1/workers/w/poll", "/v1/workers/w/reports"
	for _, c := range []struct{ path, body string }{
		{tasks, `{"flow":"` + slug + `"}`},
		{tasks, `{"flow":"` + slug + `","params":{"a":[1,{"b":"ü\n"}]},"labels":{"k":"v"},"version":1}`},
		{tasks, `{"flow":"` + slug + `","params":{"a":null},"labels":null}`},
		{tasks, `{"flow":"` + slug + `","idempotency_key":"k"}`},
		{tasks, `{"flow":"` + slug + `","wait_ms":1}`},
		{tasks, `{"Flow":"` + slug + `"}`},
		{tasks, `{"flow":"` + slug + `","more":1}`},
		{tasks, `{"flow":"` + slug + `","version":-1}`},
		{tasks, `{"flow":"` + slug + `","version":7}`},
		{tasks, `{"flow":"` + slug + `","version":"1"}`},
		{tasks, `{"flow":"` + slug + `","wait_ms":300001}`},
		{tasks, `{"flow":"` + slug + `","idempotency_key":"` + strings.Repeat("k", 201) + `"}`},
		{tasks, `{"flow":"` + slug + `","labels":` + manyLabels(65) + `}`},
		{tasks, `{"flow":"` + slug + `","params":[1]}`},
		{tasks, `{"flow":"` + slug + `","labels":{"a:b":"c"}}`},
		{tasks, `{"flow":"` + slug + `"} {}`},
		{tasks, `{"flow":"nobody's"}`},
		{tasks, `{"flow":""}`},
		{tasks, `{"flow":`},
		{tasks, `{}`},
		{tasks, `[]`},
		{starts, `{"starts":[{"flow":"` + slug +
			`","params":{"a":1},"labels":{"k":"v"}},{"flow":"nobody's"},{"flow":"` + slug +
			`","wait_ms":1}]}`},
		{starts, `{"starts":[{"flow":"` + slug + `"},{"flow":""}]}`},
		{starts, `{"starts":[{"flow":"` + slug + `"}],"more":1}`},
		{starts, `{"starts":[{"flow":"` + slug + `","version":-1}]}`},
		{starts, `{"starts":[` + strings.TrimSuffix(strings.Repeat(`{"flow":"x"},`, 1001), ",") + `]}`},
		{starts, `{"starts":[]}`},
		{poll, `{"services":["x"],"max":2}`},
		{poll, `{"services":["x"],"max":0}`},
		{poll, `{"services":[],"max":1}`},
		{poll, `{"services":["x"],"max":1001}`},
		{poll, `{"services":["x"],"max":1,"flow":"nobody's"}`},
		{poll, `{"services":["x"],"max":1,"flow":"` + strings.Repeat("f", 129) + `"}`},
		{poll, `{"services":["x"],"max":1,"wait_ms":60001}`},
		{poll, `{"services":` + many(1001) + `,"max":1}`},
		{poll, `{"services":["x"],"labels":` + many(1001) + `,"max":1}`},
		{poll, `{"services":"x","max":1}`},
		{reports, `{"reports":[{"job":"t:a.1.0.1","token":"x","output":1}]}`},
		{reports, `{"reports":[{"job":"no job","token":"x"},{"job":"t:a.1.0.1","token":"x","error":"e","details":{"a":1},"fatal":true}]}`},
		{reports, `{"reports":[{"job":"j","token":""}]}`},
		{reports, `{"reports":[{"job":"j","token":"x","lines":[{"text":"l"}]}]}`},
		{reports, `{"reports":[{"job":"` + strings.Repeat("j", 4001) + `","token":"x"}]}`},
		{reports, `{"reports":[{"job":"j","token":"` + strings.Repeat("x", 257) + `"}]}`},
		{reports, `{"reports":[{"job":"j","token":"x","lines_from":-1}]}`},
		{reports, `{"reports":[` + strings.TrimSuffix(strings.Repeat(`{"job":"j","token":"x"},`, 1001), ",") + `]}`},
		{"/v1/workers/" + strings.Repeat("w", 257) + "/poll", `{"services":["x"],"max":1}`},
		{reports, `{"reports":[{"job":"t:a.1.0.1","token":"x"}],"next":{"services":["x"],"max":2}}`},
		{reports, `{"reports":[{"job":"t:a.1.0.1","token":"x"}],"next":{"services":["x"],"labels":["l"]}}`},
		{reports, `{"reports":[{"job":"j","token":"x"}],"next":{"services":[],"max":1}}`},
		{reports, `{"reports":[{"job":"j","token":"x"}],"next":{"services":["x"],"max":1001}}`},
		{reports, `{"reports":[{"job":"j","token":"x"}],"next":{"services":["x"],"max":1,"wait_ms":1}}`},
		{reports, `{"reports":[{"job":"j","token":"x"}],"next":{"services":` + many(1001) + `,"max":1}}`},
		{reports, `{"reports":[{"job":"j","token":"x"}],"next":{"services":["x"],"labels":` + many(1001) + `,"max":1}}`},
		{reports, `{"reports":[]}`},
		{reports, `{"reports":[{"token":"x"}]}`},
	} {
		if c.path == poll {
			for range 4 {
				s.call(201, "POST", tasks, obj{"flow": queue})
			}
		}
		fast, framework := ask(c.path, c.body, "application/json"), ask(c.path, c.body, "application/json, text/html;q=0.1")
		if strings.Contains(c.body, "idempotency_key") { // the second one gets the existing task
			fast, framework = strings.Replace(fast, "201 Created", "200 OK", 1),
				strings.Replace(framework, `"created":false`, `"created":true`, 1)
		}
		require.Equal(t, framework, fast, c.body)
	}
	s.call(201, "POST", tasks, obj{"flow": slug, "params": obj{"large": strings.Repeat("x", 300<<10)}})
}

// many returns a list of n names.
func many(n int) string {
	return `[` + strings.TrimSuffix(strings.Repeat(`"x",`, n), ",") + `]`
}

func manyLabels(n int) string {
	labels := map[string]string{}
	for i := range n {
		labels[fmt.Sprint("l", i)] = "v"
	}
	text, _ := json.Marshal(labels)
	return string(text)
}

func TestAFastRouteChecksRoles(t *testing.T) {
	s := start(t, func(set *settings) { set.Tokens = []string{"root"} })
	for role, want := range map[string][]int{"viewer": {403, 403, 403, 403},
		"operator": {404, 403, 403, 200}, "worker": {403, 200, 200, 403}} {
		made, err := s.as("root").CreateToken(t.Context(), wire.TokenRequest{Name: role, Role: role})
		require.NoError(t, err)
		for i, request := range []struct{ path, body string }{
			{"/v1/tasks", `{"flow":"nobody's"}`},
			{"/v1/workers/w/poll", `{"services":["x"],"max":1}`},
			{"/v1/workers/w/reports", `{"reports":[{"job":"j","token":"x"}]}`},
			{"/v1/tasks/starts", `{"starts":[{"flow":"nobody's"}]}`},
		} {
			require.Equal(t, want[i], s.send("POST", request.path, request.body, "Authorization",
				"Bearer "+made.Secret).status, "%s: %s", role, request.path)
		}
	}
}
