package pocketflowhttp

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/flow"
)

// sharedOf returns a scope's shared state with `_rt`, which shows the progress of the active node
// in this dialect. `_rt` is computed on reading and not stored.
func sharedOf(sc *flow.Scope) map[string]any {
	shared := make(map[string]any, len(sc.Shared)+1)
	for k, v := range sc.Shared {
		shared[k] = v
	}
	if key, progress := progressOf(sc.Step); progress != nil {
		shared["_rt"] = map[string]any{key: progress}
	}
	return shared
}

// encodeValue encodes a value built from valid JSON and plain data, so it cannot fail.
func encodeValue(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

type rtStart struct {
	Start int64 `json:"start"` // Unix milliseconds
}

type rtUnits struct {
	Done map[string]json.RawMessage `json:"done"`
	Errs map[string]string          `json:"errs"`
	// foreach: the next item; items run one after the other
	Idx      *int   `json:"idx,omitempty"`
	Max      int    `json:"max"`
	Mode     string `json:"mode"`
	Strategy string `json:"strategy"`
}

type rtSubflow struct {
	Curr      string         `json:"curr"`
	Shared    map[string]any `json:"shared"`
	Last      string         `json:"last"`
	Retries   *int           `json:"retries,omitempty"`
	NextTryAt *int64         `json:"next_try_at,omitempty"` // Unix milliseconds
}

// progressOf returns the progress of an active step for `_rt`. It returns nil if the step has no
// progress.
func progressOf(st *flow.Step) (key string, progress any) {
	if st == nil {
		return "", nil
	}
	name := st.Node.Key
	switch st.Node.Kind {
	case flow.KindTimer:
		return "tm:" + name, rtStart{st.EnteredAt}
	case flow.KindWaitEvent:
		return "we:" + name, rtStart{st.EnteredAt}
	case flow.KindApproval:
		return "ap:" + name, struct{}{}
	case flow.KindParallel:
		return "pl:" + name, unitsProgress(st)
	case flow.KindForeach:
		return "fe:" + name, unitsProgress(st)
	case flow.KindSubflow:
		if st.Child != nil {
			return "sf:" + name, subflowProgress(st)
		}
	}
	return "", nil
}

func unitsProgress(st *flow.Step) rtUnits {
	p := rtUnits{Done: map[string]json.RawMessage{}, Errs: map[string]string{}, Strategy: string(st.Node.Strategy), Mode: "concurrent"}
	if st.Node.Each != nil {
		p.Max = st.Node.Each.Window
	}
	if p.Max == 1 {
		p.Max, p.Mode = 0, "sequential"
	}
	for i := range st.Units {
		switch u := &st.Units[i]; u.Status {
		case flow.UnitCompleted:
			p.Done[st.UnitName(i)] = api.OrNull(u.Output)
		case flow.UnitFailed:
			p.Errs[st.UnitName(i)] = plainError(u.Error.Text)
		}
	}
	if st.Node.Kind == flow.KindForeach {
		idx := 0
		if p.Mode == "sequential" {
			idx = st.Done
		}
		p.Idx = &idx
	}
	return p
}

func subflowProgress(st *flow.Step) rtSubflow {
	p := rtSubflow{Curr: st.Child.Cursor, Shared: sharedOf(st.Child), Last: st.Child.LastAction}
	if st.Node.Strategy == flow.StrategyRetry {
		p.Retries, p.NextTryAt = &st.Child.Retries, &st.Child.EnterAt
	}
	return p
}
