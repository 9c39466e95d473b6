package actors

import "encoding/json"

// referenceFunc returns the function that replaces large values of decisions by references; nil if
// all values are in the store.
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

// releaseObjects releases the objects that a draft has created.
func (t taskJournal) releaseObjects(p *journalDraft) {
	if p != nil && len(p.newObjects) > 0 {
		t.m.cfg.Payloads.DropMade(p.newObjects)
		p.newObjects = nil
	}
}

// dropUnstoredObjects releases all created objects that are not stored.
func (t taskJournal) dropUnstoredObjects() {
	t.releaseObjects(t.inflight)
	t.releaseObjects(t.openDraft)
	t.releaseObjects(&journalDraft{newObjects: t.newObjects})
	t.newObjects = nil
}
