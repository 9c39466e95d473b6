package actors

// park is called before every wait of the member's own. Under the real host it returns at once and
// the wait blocks by itself; the simulator returns when the wait is over.
func (m *Member) park(over func() bool) {
	if m.cfg.Host.Park != nil {
		m.cfg.Host.Park(over)
	}
}

// closed says whether a channel without values is closed; nil never is.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
