package flow

import (
	"bytes"

	"github.com/troupe-engine/troupe/flow/codec"
)

// Snapshot is an encoded state as a sequence of pieces. Large values are separate pieces that are
// shared with the state, so a snapshot needs little additional memory. This is safe because values
// are never changed.
type Snapshot [][]byte

// Len returns the size of the snapshot in bytes.
func (s Snapshot) Len() (n int) {
	for _, piece := range s {
		n += len(piece)
	}
	return n
}

// Bytes returns a copy of the snapshot in one piece.
func (s Snapshot) Bytes() []byte { return bytes.Join(s, nil) }

// EncodeSnapshot encodes a state.
func EncodeSnapshot(s *State) Snapshot {
	c := codec.WriteSharing(append(make([]byte, 0, s.viewPart().roomForSnapshot()), snapshotFormat))
	codeState(c, s)
	return c.Pieces()
}

// roomForSnapshot estimates the size of a snapshot without the shared values.
func (s viewState) roomForSnapshot() int {
	n := 1 << 10
	n += codec.Copied(len(s.Params)) + len(s.Error)
	if s.Root == nil {
		return n
	}
	for key, v := range s.Root.Shared {
		n += len(key) + codec.Copied(len(v)) + 8
	}
	for i := range s.Root.Nodes {
		n += 40 + codec.Copied(len(s.Root.Nodes[i].Output))
	}
	for _, st := range s.Root.Active() {
		units := max(len(st.Units), 1)
		n += units * (16 + codec.Copied(st.size/units))
	}
	return n
}

// DecodeSnapshot decodes a state of a task of the plan; its values share the memory of b. It
// returns false for a snapshot that cannot be used: of another format or plan, or damaged.
func DecodeSnapshot(b []byte, plan *Plan) (s *State, ok bool) {
	if len(b) == 0 || b[0] != snapshotFormat {
		return nil, false
	}
	c := codec.ReadOwn(b[1:])
	s = new(State)
	codeState(c, s)
	if c.Broken() != "" || len(c.Bytes()) > 0 || s.Root == nil {
		return nil, false
	}
	return s, s.linkPart().linkPlan(plan) == nil
}

func codeState(c *codec.Codec, s *State) {
	codec.Text(c, &s.Task)
	codec.Text(c, &s.Version)
	codec.Text(c, &s.Origin)
	codec.Pointer(c, &s.Traced, CodeTraced)
	codec.Text(c, &s.Status)
	codec.Text(c, &s.Error)
	c.Raw(&s.Params)
	codec.Pointer(c, &s.Root, codeScope)
	c.Int64(&s.CreatedAt)
	c.Int64(&s.UpdatedAt)
	c.Int64(&s.EndedAt)
	c.Int64(&s.PausedAt)
	c.Int64(&s.ResumedAt)
	c.Int64(&s.Deadline)
	c.Int64(&s.DeadlineLeft)
	c.Int(&s.Steps)
	c.Int(&s.Followed)
	codec.List(c, &s.FollowedErrors, codeFollowed)
	c.Int64(&s.CancelAt)
	codec.Text(c, &s.CancelError)
	codec.Pointer(c, &s.Closing, codeClosing)
	c.Int(&s.Closings)
	codec.List(c, &s.Undoables, codeUndoable)
	codec.List(c, &s.Done, codeUnitRange)
	codec.List(c, &s.Signals, codeSignal)
	c.Int(&s.Signaled)
	codec.Pointer(c, &s.Permits, codePermits)
	c.Int(&s.Asked)
	codec.List(c, &s.AnsweredIDs, codec.Text[string])
	codec.Map(c, &s.Appended, (*codec.Codec).Int)
}

func codeScope(c *codec.Codec, sc *Scope) {
	codec.Text(c, &sc.Path)
	codec.Map(c, &sc.Shared, (*codec.Codec).Raw)
	codec.Text(c, &sc.Cursor)
	codec.Text(c, &sc.LastAction)
	codec.Map(c, &sc.Visits, (*codec.Codec).Int)
	codec.Pointer(c, &sc.Step, codeStep)
	c.Int64(&sc.EnterAt)
	c.Int(&sc.Retries)
	c.Int(&sc.Idle)
	c.Bool(&sc.Worked)
	codec.Text(c, &sc.Failed)
	codec.Text(c, &sc.FailedAt)
	codec.Pointer(c, &sc.Kept, codeKept)
	codec.List(c, &sc.Nodes, codeNode)
	codec.Map(c, &sc.Past, codePast)
	codec.Pointer(c, &sc.Function, codeFunction)
}

func codeFunction(c *codec.Codec, f *FunctionState) {
	codec.List(c, &f.Steps, codeCodeStep)
	codec.List(c, &f.Waits, func(c *codec.Codec, st **Step) { codec.Pointer(c, st, codeStep) })
	codec.Map(c, &f.Tries, (*codec.Codec).Int)
	c.Raw(&f.NextInput)
}

func codeStep(c *codec.Codec, st *Step) {
	codec.Text(c, &st.Key)
	c.Int(&st.Visit)
	c.Int(&st.Since)
	c.Raw(&st.Params)
	c.Raw(&st.Input)
	c.Int64(&st.EnteredAt)
	c.Int64(&st.Due)
	c.Int64(&st.DueLeft)
	codec.List(c, &st.Units, codeUnit)
	c.Int(&st.Next)
	c.Int(&st.Flying)
	c.Int(&st.Done)
	c.Int(&st.Failures)
	c.Bool(&st.TimedOut)
	codec.List(c, &st.Retrying, (*codec.Codec).Int)
	c.Int64(&st.StartAt)
	c.Int(&st.Initial)
	codec.List(c, &st.Extra, (*codec.Codec).Raw)
	codec.Pointer(c, &st.Child, codeScope)
	codec.Pointer(c, &st.Signal, codeSignal)
	c.Int(&st.Undoable)
	codec.List(c, &st.OwnKeys, codeOwnKeys)
}

// Flags of an encoded unit, with its status in the first three bits.
const (
	unitStatus  = 1<<3 - 1
	unitRetries = 1 << 3
	unitOutput  = 1 << 4
	unitError   = 1 << 5
	unitLive    = 1 << 6
	unitAttempt = 1 << 7 // the attempt is not the first
)

// codeUnit encodes common units in few bytes, because there may be 100,000 of them.
func codeUnit(c *codec.Codec, u *Unit) {
	has := byte(u.Status) | flagIf(unitRetries, u.RetryAt != 0) | flagIf(unitOutput, len(u.Output) > 0) |
		flagIf(unitError, u.Error != nil) | flagIf(unitLive, u.Live != nil) | flagIf(unitAttempt, u.Attempt != 1)
	c.Byte(&has)
	if c.Reading() {
		u.Status, u.Attempt = UnitStatus(has&unitStatus), 1
		if u.Status > UnitCanceled {
			c.Fail(codec.NoSuch)
		}
	}
	if has&unitAttempt != 0 {
		codeInt32(c, &u.Attempt)
	}
	if has&unitRetries != 0 {
		c.Int64(&u.RetryAt)
	}
	if has&unitOutput != 0 {
		c.Raw(&u.Output)
	}
	if has&unitError != 0 {
		codec.Pointer(c, &u.Error, codeFailure)
	}
	if has&unitLive != 0 {
		codec.Pointer(c, &u.Live, codeLive)
	}
}

func codeFailure(c *codec.Codec, f *Failure) {
	codec.Text(c, &f.Text)
	c.Raw(&f.Details)
}

func codeLive(c *codec.Codec, l *Live) {
	c.Int64(&l.StartedAt)
	c.Int64(&l.Due)
	c.Int64(&l.DueLeft)
	c.Int64(&l.StartBy)
	codec.Text(c, &l.Carrier)
	codec.Text(c, &l.Worker)
	codec.Text(c, &l.Token)
	c.Int64(&l.ClaimedAt)
	c.Int64(&l.Until)
	codec.Text(c, &l.Note)
	c.Int(&l.Deliveries)
	c.Int(&l.Given)
	c.Int(&l.Brought)
	c.Bool(&l.Again)
	c.Bool(&l.Heard)
	codec.Map(c, &l.Vars, codec.Text[string])
	codec.Pointer(c, &l.Permits, codePermits)
	codec.Pointer(c, &l.Outside, codeOutside)
	codec.Text(c, &l.Held)
	c.Bool(&l.Undoes)
}

func codeCodeStep(c *codec.Codec, s *CodeStep) {
	codec.Text(c, &s.Name)
	c.Int(&s.Use)
	codec.Text(c, &s.Kind)
	codec.Text(c, &s.Hash)
	c.Raw(&s.Output)
	codec.Text(c, &s.Error)
	c.Raw(&s.Details)
	c.Int(&s.Tries)
	c.Int64(&s.StartedAt)
	c.Int64(&s.EndedAt)
}

func codeOutside(c *codec.Codec, x *Outside) {
	codec.List(c, &x.Jobs, codeOutsideJob)
	c.Int(&x.Left)
	c.Raw(&x.Output)
	codec.Text(c, &x.Worker)
	codec.Text(c, &x.URL)
	c.Bool(&x.Log)
	c.Int64(&x.Since)
}

func codeOutsideJob(c *codec.Codec, j *OutsideJob) {
	codec.Text(c, &j.Service)
	codec.Text(c, &j.ID)
	c.Bool(&j.Ended)
	c.Raw(&j.Output)
}

func codePermits(c *codec.Codec, p *Permits) {
	codec.List(c, &p.List, codePermit)
	c.Int(&p.Got)
	c.Int64(&p.AskedAt)
}

func codePermit(c *codec.Codec, p *Permit) {
	codec.Text(c, &p.Key)
	c.Int(&p.Limit)
	c.Int64(&p.PerMS)
	codec.Text(c, &p.Full)
	c.Int(&p.Priority)
	codec.Text(c, &p.Fair)
}

func flagIf(bit byte, there bool) byte {
	if there {
		return bit
	}
	return 0
}

func codeNode(c *codec.Codec, n *NodeState) {
	status, rare, units := n.Status(), n.Rare(), n.Units()
	codec.Text(c, &status)
	codeInt32(c, &n.Waits)
	c.Bool(&n.Doomed)
	c.Bool(&n.Held)
	codeInt32(c, &n.Visit)
	codec.Text(c, &rare.Reason)
	codec.Text(c, &rare.Mode)
	codec.Text(c, &rare.Error)
	c.Raw(&rare.Details)
	c.Raw(&n.Output)
	codeInt32(c, &units.Total)
	codeInt32(c, &units.Initial)
	codeInt32(c, &units.Left)
	codeInt32(c, &units.Failures)
	c.Int64(&n.StartedAt)
	c.Int64(&n.EndedAt)
	codec.Pointer(c, &n.Step, codeStep)
	codec.Pointer(c, &rare.Kept, codeKept)
	codec.List(c, &rare.Extra, (*codec.Codec).Raw)
	if c.Reading() {
		n.setDecoded(c, status, rare, units)
	}
}

// setDecoded sets the fields of a node that a snapshot stores in another form than the state.
func (n *NodeState) setDecoded(c *codec.Codec, status StepStatus, rare NodeRare, units NodeUnits) {
	place, ok := status.statusIndex()
	if !ok {
		c.Fail(codec.NoSuch)
	}
	n.status = place
	n.setRare(rare)
	n.setUnits(units)
}

func codeInt32(c *codec.Codec, v *int32) {
	n := int64(*v)
	c.Int64(&n)
	if c.Reading() { // while encoding, other goroutines may read the value
		*v = int32(n)
	}
}

func codeKept(c *codec.Codec, k *Kept) {
	c.Raw(&k.Input)
	c.Int(&k.Initial)
	codec.List(c, &k.Units, codeUnit)
	codec.Pointer(c, &k.Child, codeScope)
	c.Int(&k.Since)
	codec.List(c, &k.OwnKeys, codeOwnKeys)
}

func codeClosing(c *codec.Codec, cl *Closing) {
	codec.Text(c, &cl.Status)
	codec.Text(c, &cl.Error)
	codec.List(c, &cl.Undone, codeUnitRange)
	c.Bool(&cl.Final)
	codec.Pointer(c, &cl.Scope, codeScope)
}

func codeUndoable(c *codec.Codec, u *Undoable) {
	codec.Text(c, &u.Scope)
	codec.Text(c, &u.Node)
	c.Int(&u.Visit)
	c.Int(&u.Since)
	codec.Text(c, &u.By)
	c.Int(&u.Left)
	c.Raw(&u.Input)
	c.Raw(&u.Items)
	c.Int(&u.Initial)
	codec.List(c, &u.Extra, (*codec.Codec).Raw)
	c.Bool(&u.Merged)
	c.Bool(&u.Many)
	c.Raw(&u.Output)
}

func codeUnitRange(c *codec.Codec, r *UnitRange) {
	c.Int(&r.Step)
	c.Int(&r.From)
	c.Int(&r.Count)
}

func codeOwnKeys(c *codec.Codec, k *OwnKeys) {
	c.Int(&k.From)
	c.Int(&k.Count)
	c.Int(&k.Visit)
}

func codeSignal(c *codec.Codec, sig *StoredSignal) {
	c.Int(&sig.Number)
	codec.Text(c, &sig.Key)
	c.Raw(&sig.Value)
	codec.List(c, &sig.Taken, codec.Text[string])
}

func codeFollowed(c *codec.Codec, f *FollowedError) {
	codec.Text(c, &f.Node)
	c.Int(&f.Times)
	c.Int(&f.Visit)
	codec.Text(c, &f.Error)
	c.Int64(&f.At)
}
