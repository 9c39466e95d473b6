package troupe

// InMemory returns how many task actors the member has.
func (e *Engine) InMemory() int64 { return e.member.Stats().Actors["task"] }
