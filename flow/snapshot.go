package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// snapshotFormat names how snapshots are written. One of another format is of no use: the caller
// folds the whole journal instead.
const snapshotFormat = 1

type snapshot struct {
	Format int
	State  *State
}

// EncodeSnapshot writes a state down.
func EncodeSnapshot(s *State) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // values stay as they came
	if err := enc.Encode(snapshot{snapshotFormat, s}); err != nil {
		return nil, fmt.Errorf("flow: snapshot of task %s: %w", s.Task, err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// DecodeSnapshot reads a state of a plan's task. ok is false for a snapshot of another format.
func DecodeSnapshot(b []byte, plan *Plan) (s *State, ok bool, err error) {
	var head struct{ Format int }
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, false, fmt.Errorf("flow: a snapshot cannot be read: %w", err)
	}
	if head.Format != snapshotFormat {
		return nil, false, nil
	}
	var snap snapshot
	if err := json.Unmarshal(b, &snap); err != nil {
		return nil, false, fmt.Errorf("flow: a snapshot cannot be read: %w", err)
	}
	if snap.State == nil || snap.State.Root == nil {
		return nil, false, fmt.Errorf("flow: a snapshot holds no state")
	}
	if err := snap.State.link(plan); err != nil {
		return nil, false, err
	}
	return snap.State, true, nil
}

// link restores what follows from the exported fields and the plan.
func (s *State) link(plan *Plan) error {
	s.Plan = plan
	s.linkRoot()
	if err := s.linkScope(s.Root); err != nil {
		return err
	}
	if s.Closing == nil {
		return nil
	}
	if plan.Closing == nil || s.Closing.Scope == nil {
		return fmt.Errorf("flow: a snapshot of task %s compensates, which its flow does not", s.Task)
	}
	s.linkClosing()
	return s.linkScope(s.Closing.Scope)
}

// linkScope links a scope's active steps and everything below them.
func (s *State) linkScope(sc *Scope) error {
	if sc.Graph.Dag != nil {
		if len(sc.Nodes) != len(sc.Graph.Dag.List) {
			return fmt.Errorf("flow: a snapshot of task %s has %d nodes in scope %q, its flow has %d", s.Task, len(sc.Nodes), sc.Path, len(sc.Graph.Dag.List))
		}
		sc.linkDag()
		for i := range sc.Nodes {
			if st := sc.Nodes[i].Step; st != nil {
				if err := s.linkStep(sc, st); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if sc.Step == nil {
		return nil
	}
	return s.linkStep(sc, sc.Step)
}

func (s *State) linkStep(sc *Scope, st *Step) error {
	if st.Node = sc.Graph.Nodes[st.Key]; st.Node == nil {
		return fmt.Errorf("flow: a snapshot of task %s is at node %q, which its flow does not have", s.Task, st.Key)
	}
	st.scope = sc
	if !s.Status.Ended() {
		s.watch(st)
	}
	if st.Child == nil {
		return nil
	}
	s.adopt(st)
	return s.linkScope(st.Child)
}
