//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// measureStarts starts tasks over HTTP, -width tasks per request, and measures the request times.
// The tasks wait for an approval, so the member only handles starts. Callers and the member are in
// this process, over real connections.
func (b *benchRun) measureStarts() error {
	if err := b.publishFlow("parked", parkedFlow); err != nil {
		return err
	}
	if err := b.serveAPI(b.ctx); err != nil {
		return err
	}
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = b.o.concurrency
	requests := b.o.n / b.o.width
	if err := b.forEach(requests/10, b.o.concurrency, func(int) error { return b.startOverHTTP() }); err != nil {
		return err
	}
	var seen latencySamples
	m, err := b.startMeter()
	if err != nil {
		return err
	}
	err = b.forEach(requests, b.o.concurrency, func(int) error {
		began := time.Now()
		err := b.startOverHTTP()
		seen.addSample(time.Since(began))
		return err
	})
	if err != nil {
		return err
	}
	seen.fillPercentiles(&b.result)
	b.result.Extra = map[string]float64{"width": float64(b.o.width)}
	return m.finishMeter(requests*b.o.width, requests*b.o.width)
}

// startOverHTTP sends a request with several starts.
func (b *benchRun) startOverHTTP() error {
	const start = `{"flow":"parked","params":{"order":7,"customer":"someone","note":"a start as it may be"}}`
	if b.o.width == 1 {
		return b.postJSON("/v1/tasks", start, http.StatusCreated, new(wire.StartResult))
	}
	var answer wire.BatchStartResults
	err := b.postJSON("/v1/tasks/starts", `{"starts":[`+start+strings.Repeat(","+start, b.o.width-1)+`]}`, http.StatusOK, &answer)
	for i := range answer.Items {
		if p := answer.Items[i].Problem; p != nil && err == nil {
			err = fmt.Errorf("a start was refused: %s", p.Detail)
		}
	}
	return err
}

func (b *benchRun) postJSON(path, body string, want int, answer any) error {
	resp, err := http.Post(b.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != want {
		return fmt.Errorf("%s answers %d: %s", path, resp.StatusCode, bytes.TrimSpace(text))
	}
	return json.Unmarshal(text, answer)
}
