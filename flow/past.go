package flow

// Past is how the newest visit of a node in graph mode went, once it is over: enough to show the whole graph of a task
// without its history. A scope of dag mode has the same in its nodes.
type Past struct {
	Status              StepStatus
	Reason              string
	Error               string // its beginning; the journal has all of it
	Total, Done, Failed int    // units
	StartedAt, EndedAt  int64
}

// maxPastText is how many bytes of an error are kept with it.
const maxPastText = 200

// pass keeps how a visit went that is over.
func (sc *Scope) pass(st *Step, p Past) {
	if sc.Past == nil {
		sc.Past = map[string]Past{}
	}
	p.Total, p.Done, p.Failed, p.StartedAt = len(st.Units), st.Done, st.Failures, st.EnteredAt
	sc.Past[st.Key] = p
}
