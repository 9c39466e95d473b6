package attack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Limits for the effect of an attack on other users. Times are checked only in the full form,
// because the short form runs beside other work.
const (
	memoryBudgetMB = 1024
	taskBudget     = time.Second     // p99 of simple tasks
	cancelBudget   = 5 * time.Second // for a cancel of the attacker's own tasks
)

// result is one JSON line.
type result struct {
	Attack   string      `json:"attack"`
	Store    string      `json:"store"`
	Full     bool        `json:"full"`
	Seconds  float64     `json:"seconds"`
	Answers  map[int]int `json:"answers"` // count by status; 0 for no answer
	Tasks    int         `json:"tasks"`   // simple tasks that ended meanwhile
	Refused  int         `json:"refused"` // refused requests of these tasks
	P50MS    float64     `json:"p50_ms"`
	P99MS    float64     `json:"p99_ms"`
	MaxMS    float64     `json:"max_ms"`
	CancelMS float64     `json:"cancel_ms"` // slowest cancel of the attacker's tasks
	RSSMB    float64     `json:"rss_mb"`
	PeakMB   float64     `json:"peak_mb"`
	Holes    []string    `json:"holes,omitempty"`
}

func (r *result) users(s seen) {
	r.Tasks, r.Refused = s.tasks, s.refused
	r.P50MS, r.P99MS, r.MaxMS = milli(s.p50), milli(s.p99), milli(s.most)
	r.Holes = append(r.Holes, s.faults...)
}

func milli(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// judge checks a result against the limits and rules.
func (r *result) judge(t *testing.T) {
	for i, hole := range r.Holes {
		const most = 12
		if i == most {
			t.Errorf("… and %d more", len(r.Holes)-most)
			break
		}
		t.Errorf("%.1000s", hole)
	}
	assert.Less(t, r.PeakMB, float64(memoryBudgetMB), "resident memory in MB")
	if r.Full {
		assert.Less(t, r.P99MS, milli(taskBudget), "p99 of simple tasks in ms")
		assert.Less(t, r.CancelMS, milli(cancelBudget), "the slowest cancel in ms")
	}
	line, err := json.Marshal(r)
	require.NoError(t, err)
	t.Logf("%s", line)
}

// table prints the results of all attacks on a store and saves them in the folder logs.
func table(t *testing.T, store string, results []result) {
	var text bytes.Buffer
	fmt.Fprintf(&text, "Attacks on %s, and what simple tasks beside them took:\n", store)
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "p50 ms\tp99 ms\tmax ms\tcancel ms\tpeak MB\tRSS MB\ttasks\trefused\tseconds\tholes\t")
	for _, r := range results {
		fmt.Fprintf(w, "%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%d\t%d\t%.1f\t%d\t  %s\n",
			r.P50MS, r.P99MS, r.MaxMS, r.CancelMS, r.PeakMB, r.RSSMB, r.Tasks, r.Refused, r.Seconds, len(r.Holes), r.Attack)
	}
	require.NoError(t, w.Flush())
	t.Logf("\n%s", text.Bytes())
	require.NoError(t, os.WriteFile(filepath.Join(logs, "attack-"+store+".txt"), text.Bytes(), 0o644))
}
