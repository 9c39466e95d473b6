package actors

import "encoding/json"

// referenceFunc returns the function that creates references for values made by the task's
// decisions.
func (t taskJournal) referenceFunc() func(json.RawMessage) json.RawMessage {
	p := t.m.cfg.Payloads
	if p == nil {
		return nil
	}
	return func(v json.RawMessage) json.RawMessage {
		ref, made := p.Refer(t.id, v)
		t.newObjects = append(t.newObjects, made...)
		return ref
	}
}

// releaseObjects releases the objects that a draft has made.
func (t taskJournal) releaseObjects(p *journalDraft) {
	if p != nil && len(p.newObjects) > 0 {
		t.m.cfg.Payloads.DropMade(p.newObjects)
		p.newObjects = nil
	}
}

// dropUnstoredObjects releases all objects that are not stored.
func (t taskJournal) dropUnstoredObjects() {
	t.releaseObjects(t.inflight)
	t.releaseObjects(t.openDraft)
	t.releaseObjects(&journalDraft{newObjects: t.newObjects})
	t.newObjects = nil
}
