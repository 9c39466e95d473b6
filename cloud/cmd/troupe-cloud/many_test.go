package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/cloud/internal/fakes"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

func TestALargeInputNeedsAnObjectStore(t *testing.T) {
	t.Parallel()
	g := fakes.NewGoogle(t)
	input := obj{"text": strings.Repeat("x", 40_000)}
	none := newMember(t, g).run("c6", input, `load: {executor: cloudrun, job: load}`)
	none.ends("failed")
	require.Regexp(t, `the input has 400\d\d bytes, and a variable of Cloud Run at most 32768: `+
		`it needs an object store \(--object-store\), where the job finds it`, none.task("load")["error"])
	require.Empty(t, g.Run.Executions("load"))

	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := fakes.NewGoogle(t)
			g.Run.Behave("load", fakes.Behavior{Work: func(env map[string]string) { tellLength(t.Context(), env["TASK_SPEC_PATH"]) }})
			r := newMember(t, g, withFiles(t, kind)...).run("c6", input, `load: {executor: cloudrun, job: load}`)
			r.ends("success")
			require.Equal(t, obj{"letters": 40_000.0}, r.task("load")["output"])
			env := g.Run.Executions("load")[0].Env
			require.NotContains(t, env, "ORK_INPUT_JSON")
			require.Equal(t, kind != "file", strings.HasPrefix(env["TASK_SPEC_PATH"], kind+"://bucket-"), env["TASK_SPEC_PATH"])
		})
	}
}

// tellLength is a job that counts the letters of its input. It fails the test if it cannot read or
// write.
func tellLength(ctx context.Context, spec string) {
	var asked struct{ Input struct{ Text string } }
	text, err := gets(ctx, spec, "spec.json")
	if err == nil && json.Unmarshal([]byte(text), &asked) == nil {
		_ = puts(ctx, spec, "output.json", fmt.Sprintf(`{"letters": %d}`, len(asked.Input.Text)))
	}
}

// Google's read quota is small, so many executions of one job are read with a list.
func TestManyExecutionsOfAJobAreReadWithOneList(t *testing.T) {
	t.Parallel()
	const many, takes = 200, 8 * time.Second
	g := fakes.NewGoogle(t)
	m := newMember(t, g)
	g.Run.Behave("load", fakes.Behavior{Takes: takes})
	r := m.run("c7", nil, fmt.Sprintf(`load: {executor: cloudrun, job: load, parallel: %d}`, many))
	require.Eventually(t, func() bool { return len(g.Run.Executions("load")) == many }, patience, 10*time.Millisecond)
	from := time.Now()
	g.Forget()
	r.ends("success")
	seconds := time.Since(from).Seconds()
	heard := len(g.Requests())
	t.Logf("%d requests in %.1f s", heard, seconds)
	require.LessOrEqual(t, float64(heard), 2*seconds+10)
}

// kills returns how often the member is killed while executions are running: TROUPE_CLOUD_KILLS.
func kills(t *testing.T) int {
	text := os.Getenv("TROUPE_CLOUD_KILLS")
	if text == "" {
		return 3
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

func TestKillsNeitherDuplicateNorLoseExecutions(t *testing.T) {
	t.Parallel()
	g := fakes.NewGoogle(t)
	m := newMember(t, g)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	const jobs, perKill = 4, 12
	for i := range jobs {
		g.Run.Behave(fmt.Sprintf("job-%d", i), fakes.Behavior{Takes: time.Duration(i) * 700 * time.Millisecond})
	}
	var lines []string
	for i := range perKill {
		lines = append(lines, fmt.Sprintf("t%d: {executor: cloudrun, job: job-%d}", i, i%jobs))
	}
	m.register("crash", lines...)
	begun := func() map[string]int {
		all := map[string]int{}
		for i := range jobs {
			for _, e := range g.Run.Executions(fmt.Sprintf("job-%d", i)) {
				all[e.Env["TROUPE_JOB"]]++
			}
		}
		return all
	}
	var runs []*run
	for n := range kills(t) {
		// The fake triggers the kill after a number of further start requests.
		killed := make(chan struct{})
		refusals := make([]fakes.Refusal, 1+rng.IntN(perKill))
		for i := range refusals {
			refusals[i] = fakes.Refusal{Match: ":run", Status: 503, Text: "busy"}
		}
		refusals[len(refusals)-1] = fakes.Refusal{Match: ":run", Done: true, Then: func() { m.process.Kill(); close(killed) }}
		g.Refuse(refusals...)
		started := make(chan *run)
		go func() { started <- m.insist("crash", strconv.Itoa(n)) }()
		<-killed
		m.start()
		runs = append(runs, <-started)
	}
	for _, r := range runs {
		r.ends("success")
	}
	require.Len(t, begun(), len(runs)*perKill, "none is lost")
	for job, n := range begun() {
		require.Equal(t, 1, n, "%s", job)
	}
}

// Each time only Cloud Run knows the execution: the member has not stored it yet.
func TestAMemberTakesExecutionsOverHoweverOftenItIsKilled(t *testing.T) {
	t.Parallel()
	const takeovers = 10
	for name, store := range map[string]func(*testing.T) []string{
		"sqlite":     func(*testing.T) []string { return nil },
		"postgresql": func(t *testing.T) []string { return []string{"--store", pgtest.DSN(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := fakes.NewGoogle(t)
			m := newMember(t, g, store(t)...)
			m.register("taken", `load: {executor: cloudrun, job: load}`)
			killed := make(chan struct{}, 1+takeovers)
			kill := func() { m.process.Kill(); killed <- struct{}{} }
			kills := []fakes.Refusal{{Match: ":run", Done: true, Then: kill}}
			for range takeovers {
				kills = append(kills, fakes.Refusal{Match: "/executions", Then: kill})
			}
			g.Refuse(kills...)
			started := make(chan *run)
			go func() { started <- m.insist("taken", "1") }()
			for range kills {
				<-killed
				m.launch() // it may be killed before it is ready
			}
			m.ready()
			(<-started).ends("success")
			require.Len(t, g.Run.Executions("load"), 1)
		})
	}
}

func TestAnotherMemberTakesExecutionsOver(t *testing.T) {
	t.Parallel()
	const many = 24
	g := fakes.NewGoogle(t)
	store := []string{"--store", pgtest.DSN(t)}
	first, second := newMember(t, g, store...), newMember(t, g, store...)
	g.Run.Behave("load", fakes.Behavior{Takes: 2 * time.Second})
	busy := make([]fakes.Refusal, many/2)
	for i := range busy {
		busy[i] = fakes.Refusal{Match: ":run", Status: 503, Text: "busy"}
	}
	g.Refuse(append(busy, fakes.Refusal{Match: ":run", Done: true, Then: first.process.Kill})...)
	second.register("taken", `load: {executor: cloudrun, job: load}`)
	var runs []*run
	for i := range many { // each belongs to one of the two members
		runs = append(runs, second.insist("taken", strconv.Itoa(i)))
	}
	<-first.process.Done()
	for _, r := range runs {
		r.ends("success")
	}
	begun := map[string]bool{}
	for _, e := range g.Run.Executions("load") {
		begun[e.Env["TROUPE_JOB"]] = true
	}
	require.Len(t, begun, many, "none is lost")
	require.Len(t, g.Run.Executions("load"), many, "none is begun twice")
}

// insist starts a run exactly once, even if the member is killed repeatedly. It returns nil after a
// timeout.
func (m *member) insist(name, key string) *run {
	body := `{"idempotency_key": "` + key + `"}`
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		resp, err := http.Post("http://"+m.address+"/api/workflows/"+name+"/runs", "application/json", strings.NewReader(body))
		if err != nil {
			continue // the member is being restarted
		}
		var answer struct {
			ID string `json:"run_id"`
		}
		err = json.NewDecoder(resp.Body).Decode(&answer)
		resp.Body.Close()
		if err == nil && answer.ID != "" {
			return &run{m, answer.ID}
		}
	}
	return nil
}
