package flow

import "strconv"

// turn orders a unit's job among those that were enqueued at the same time, as a text: by the start of their task,
// then by the definition's order of their steps, then by the units' index. Of graph mode only one step of a scope
// is active at a time.
func (st *Step) turn(s *State, unit int) string {
	b := appendOrdered(make([]byte, 0, 64), s.CreatedAt)
	b = append(append(b, s.Task...), '.')
	b = st.appendPlace(b)
	return string(appendOrdered(b, int64(unit)))
}

// appendPlace adds where a step is in the definition, from the root on.
func (st *Step) appendPlace(b []byte) []byte {
	if st.scope.parent != nil {
		b = st.scope.parent.appendPlace(b)
	}
	if st.Node.Dag != nil {
		b = appendOrdered(b, int64(st.Node.Dag.Index))
	}
	return b
}

// appendOrdered writes a number that is not negative so that texts have the order of numbers: how many digits
// there are comes first.
func appendOrdered(b []byte, n int64) []byte {
	at := len(b)
	b = strconv.AppendInt(append(b, 0), n, 36)
	b[at] = '0' + byte(len(b)-at-1)
	return b
}
