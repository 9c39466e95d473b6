package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/worker"
	"github.com/troupe-engine/troupe/worker/demo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "s3cret"

// post requests a job like the engine that the worker has registered with.
func post(t *testing.T, url, body string) *http.Response {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewBufferString(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+secret)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	return resp
}

// start runs a push worker, so that its services can be called one by one, and returns its URL.
func start(t *testing.T, offer func(*worker.Worker)) string {
	urls := make(chan string, 100)
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var me wire.WorkerRegistration
		_ = json.NewDecoder(r.Body).Decode(&me)
		_, _ = io.WriteString(w, `{}`)
		urls <- me.URL
	}))
	t.Cleanup(engine.Close)
	w := worker.New(worker.Config{Server: engine.URL, Push: true, URL: "http://127.0.0.1:0",
		Secret: secret, Logger: slog.New(slog.DiscardHandler)})
	offer(w)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		require.NoError(t, <-ended)
	})
	return <-urls
}

func TestServices(t *testing.T) {
	url := start(t, func(w *worker.Worker) {
		demo.Push(w)
		demo.Pull(w, demo.Options{Services: append(demo.PullServices(), "other")})
	})
	for name, tt := range map[string]struct {
		service, input, params string
		want, err              string
	}{
		"transform in capitals":            {"transform", `"aé"`, `{"op":"upper"}`, `"AÉ"`, ""},
		"transform in small letters":       {"transform", `"AB"`, `{"op":"lower"}`, `"ab"`, ""},
		"transform a string to what":       {"transform", `"AB"`, `{}`, `null`, "unsupported op"},
		"transform multiplies":             {"transform", `3`, `{"mul":2.5}`, `7.5`, ""},
		"transform without a factor":       {"transform", `3`, `{"mul":"x"}`, `3`, ""},
		"transform knows nothing else":     {"transform", `{"a":1}`, `{}`, `null`, "bad input"},
		"sum of numbers and texts of some": {"sum", `[1,"2.5","x",null,[9]]`, `{}`, `3.5`, ""},
		"sum of nothing":                   {"sum", `[]`, `{}`, `0`, ""},
		"sum wants an array":               {"sum", `1`, `{}`, `null`, "bad input"},
		"route where it is told":           {"route", `null`, `{"action":"goC"}`, `{"action":"goC"}`, ""},
		"route by itself":                  {"route", `null`, `{"action":""}`, `{"action":"goB"}`, ""},
		"async-transform with a title":     {"async-transform", `{"text":"ab","title":"T"}`, `{}`, `"[T] AB"`, ""},
		"async-transform without a title":  {"async-transform", `{"text":"ab"}`, `{}`, `"[\u003cnil\u003e] AB"`, ""},
		"async-transform of a string":      {"async-transform", `"ab"`, `{}`, `"AB (ASYNC PROCESSED)"`, ""},
		"async-transform of params.text":   {"async-transform", `{"text":1}`, `{"text":"ab"}`, `"AB (ASYNC PROCESSED)"`, ""},
		"async-transform of nothing":       {"async-transform", `null`, `{}`, `null`, "expected string input or params['text']"},
		"email-service":                    {"email-service", `null`, `{"to":"a@b"}`, `{"status":"sent","to":"a@b"}`, ""},
		"email-service to nobody":          {"email-service", `null`, `{}`, `{"status":"sent","to":""}`, ""},
		"rows of a table":                  {"rows", `"sku,n\nA,2\nB,x\n"`, `{}`, `[{"n":2,"sku":"A"},{"n":"x","sku":"B"}]`, ""},
		"rows of no text":                  {"rows", `1`, `{}`, `null`, "expected a text in CSV"},
		"rows of different lengths":        {"rows", `"a,b\n1"`, `{}`, `null`, "record on line 2: wrong number of fields"},
		"rows of nothing":                  {"rows", `""`, `{}`, `[]`, ""},
		"price of a row": {"price", `{"sku":"A","quantity":2,"price":1.5}`, `{}`,
			`{"price":1.5,"quantity":2,"sku":"A","total":3}`, ""},
		"price of a bad row": {"price", `{"sku":"A","quantity":"x","price":1}`, `{}`,
			`null`, "quantity and price of A must be numbers"},
		"store a list":              {"store", `[1,2]`, `{}`, `{"stored":2}`, ""},
		"store what is none":        {"store", `1`, `{}`, `null`, "bad input"},
		"reserve for an order":      {"reserve", `{"order":7}`, `{}`, `{"reservation":"R-7"}`, ""},
		"pay nothing in particular": {"pay", `{}`, `{}`, `null`, "expected an object with order"},
		"ship an order":             {"ship", `{"order":"x"}`, `{}`, `{"parcel":"S-x"}`, ""},
		"release what is reserved":  {"release", `{"reservation":"R-7"}`, `{}`, `{"released":"R-7"}`, ""},
		"refund what is not paid":   {"refund", `null`, `{}`, `null`, "expected an object with payment"},
		"refuse for a reason":       {"refuse", `null`, `{"reason":"no"}`, `null`, "no"},
		"refuse for none":           {"refuse", `null`, `{}`, `null`, "refused"},
		"assess a large contract":   {"assess", `{"run":{"amount":1000}}`, `{}`, `{"risk":"high"}`, ""},
		"assess a small contract":   {"assess", `{"run":{"amount":1}}`, `{}`, `{"risk":"low"}`, ""},
		"assess without an amount":  {"assess", `{"run":1}`, `{}`, `null`, "expected run.amount"},
		"clauses of a contract": {"clauses", `{"run":{"text":"One. Two."}}`, `{}`,
			`["One","Two"]`, ""},
		"clauses of nothing":            {"clauses", `{}`, `{}`, `null`, "expected run.text"},
		"a service that does not exist": {"other", `null`, `{}`, `null`, "unknown service: other"},
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"input":` + tt.input + `,"params":` + tt.params + `}`
			resp := post(t, url+"/exec/"+tt.service, body)
			defer resp.Body.Close()
			var got wire.ExecAnswer
			require.NoError(t, json.NewDecoder(resp.Body).Decode(&got))
			require.Equal(t, tt.err, got.Error)
			require.Equal(t, tt.want, string(got.Result))
		})
	}
}

func TestTheDelayOfPullServices(t *testing.T) {
	url := start(t, func(w *worker.Worker) { demo.Pull(w, demo.Options{Delay: 30 * time.Millisecond}) })
	begun := time.Now()
	resp := post(t, url+"/exec/email-service", `{}`)
	defer resp.Body.Close()
	_, err := io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(begun), 30*time.Millisecond)
}
