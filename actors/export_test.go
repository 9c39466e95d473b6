package actors

// Bringing is how many orders a member has yet to bring to others.
func (m *Member) Bringing() (n int) {
	m.envoy.mu.Lock()
	defer m.envoy.mu.Unlock()
	for _, line := range m.envoy.lines {
		n += len(line.away) + len(line.waiting)
	}
	return n
}

// Departed is how many members are remembered to have gone.
func (m *Member) Departed() int {
	m.goneMu.Lock()
	defer m.goneMu.Unlock()
	return len(m.gone)
}
