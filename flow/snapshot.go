package flow

// snapshotFormat names how snapshots are written, in their first byte. One of another format is of no use: the
// caller folds the whole journal instead. It changes with every field that is added below.
const snapshotFormat = 2

// EncodeSnapshot writes a state down.
func EncodeSnapshot(s *State) []byte {
	c := codec{b: make([]byte, 0, s.roomForSnapshot())}
	c.b = append(c.b, snapshotFormat)
	codeState(&c, s)
	return c.b
}

// roomForSnapshot is how long a snapshot is at a guess.
func (s *State) roomForSnapshot() int {
	n := 1 << 10
	n += len(s.Params) + len(s.Error)
	if s.Root == nil {
		return n
	}
	for key, v := range s.Root.Shared {
		n += len(key) + len(v) + 8
	}
	for _, st := range s.Root.Active() {
		n += 16*len(st.Units) + st.size
	}
	return n
}

// DecodeSnapshot reads a state of a plan's task; its values share the bytes of b. ok is false for a snapshot that
// is of no use here: of another format, or broken, or of another plan.
func DecodeSnapshot(b []byte, plan *Plan) (s *State, ok bool) {
	if len(b) == 0 || b[0] != snapshotFormat {
		return nil, false
	}
	c := codec{b: b[1:], reading: true}
	s = new(State)
	codeState(&c, s)
	if c.broken || len(c.b) > 0 || s.Root == nil {
		return nil, false
	}
	return s, s.link(plan) == nil
}

func codeState(c *codec, s *State) {
	codeText(c, &s.Task)
	codeText(c, &s.Version)
	codeText(c, &s.Status)
	codeText(c, &s.Error)
	c.raw(&s.Params)
	codePointer(c, &s.Root, codeScope)
	c.int64(&s.CreatedAt)
	c.int64(&s.UpdatedAt)
	c.int64(&s.EndedAt)
	c.int64(&s.PausedAt)
	c.int64(&s.ResumedAt)
	c.int64(&s.Deadline)
	c.int(&s.Steps)
	c.int64(&s.CancelAt)
	codePointer(c, &s.Closing, codeClosing)
	c.int(&s.Closings)
	codeList(c, &s.Done, codeUndo)
	codeList(c, &s.AnsweredIDs, codeText[string])
	codeMap(c, &s.Appended, (*codec).int)
}

func codeScope(c *codec, sc *Scope) {
	codeText(c, &sc.Path)
	codeMap(c, &sc.Shared, (*codec).raw)
	codeText(c, &sc.Cursor)
	codeText(c, &sc.LastAction)
	codeMap(c, &sc.Visits, (*codec).int)
	codePointer(c, &sc.Step, codeStep)
	c.int64(&sc.EnterAt)
	c.int(&sc.Retries)
	codeText(c, &sc.Failed)
	codeText(c, &sc.FailedAt)
	codePointer(c, &sc.Kept, codeKept)
	codeList(c, &sc.Nodes, codeNode)
}

func codeStep(c *codec, st *Step) {
	codeText(c, &st.Key)
	c.int(&st.Visit)
	c.raw(&st.Params)
	c.raw(&st.Input)
	c.int64(&st.EnteredAt)
	c.int64(&st.Due)
	codeList(c, &st.Units, codeUnit)
	c.int(&st.Next)
	c.int(&st.Flying)
	c.int(&st.Done)
	c.int(&st.Failures)
	c.bool(&st.TimedOut)
	codeList(c, &st.Retrying, (*codec).int)
	c.int64(&st.StartAt)
	c.int(&st.Initial)
	codeList(c, &st.Extra, (*codec).raw)
	codePointer(c, &st.Child, codeScope)
}

// What a unit has, beside its status in the first three bits.
const (
	unitStatus  = 1<<3 - 1
	unitRetries = 1 << 3
	unitOutput  = 1 << 4
	unitError   = 1 << 5
	unitLive    = 1 << 6
	unitAttempt = 1 << 7 // another one than the first
)

// codeUnit is short for the usual ones, because there may be 100,000 of them.
func codeUnit(c *codec, u *Unit) {
	has := byte(u.Status) | flagIf(unitRetries, u.RetryAt != 0) | flagIf(unitOutput, len(u.Output) > 0) |
		flagIf(unitError, u.Error != nil) | flagIf(unitLive, u.Live != nil) | flagIf(unitAttempt, u.Attempt != 1)
	c.byte(&has)
	if c.reading {
		u.Status, u.Attempt = UnitStatus(has&unitStatus), 1
		if u.Status > UnitCanceled {
			c.fail()
		}
	}
	if has&unitAttempt != 0 {
		attempt := int(u.Attempt)
		c.int(&attempt)
		if c.reading {
			u.Attempt = int32(attempt)
		}
	}
	if has&unitRetries != 0 {
		c.int64(&u.RetryAt)
	}
	if has&unitOutput != 0 {
		c.raw(&u.Output)
	}
	if has&unitError != 0 {
		codePointer(c, &u.Error, codeText[string])
	}
	if has&unitLive != 0 {
		codePointer(c, &u.Live, codeLive)
	}
}

func codeLive(c *codec, l *Live) {
	c.int64(&l.StartedAt)
	c.int64(&l.Due)
	c.int64(&l.StartBy)
	codeText(c, &l.Carrier)
	codeText(c, &l.Worker)
	codeText(c, &l.Token)
	c.int64(&l.ClaimedAt)
	c.int64(&l.Until)
	codeText(c, &l.Note)
	c.int(&l.Deliveries)
	c.bool(&l.Again)
}

func flagIf(bit byte, there bool) byte {
	if there {
		return bit
	}
	return 0
}

func codeNode(c *codec, n *NodeState) {
	codeText(c, &n.Status)
	c.int(&n.Waits)
	c.bool(&n.Doomed)
	c.int(&n.Visit)
	codeText(c, &n.Reason)
	codeText(c, &n.Mode)
	codeText(c, &n.Error)
	c.raw(&n.Output)
	c.int(&n.Total)
	c.int(&n.Initial)
	c.int(&n.Left)
	c.int(&n.Failures)
	c.int64(&n.StartedAt)
	c.int64(&n.EndedAt)
	codePointer(c, &n.Step, codeStep)
	codePointer(c, &n.Kept, codeKept)
	codeList(c, &n.Extra, (*codec).raw)
}

func codeKept(c *codec, k *Kept) {
	c.raw(&k.Input)
	c.int(&k.Initial)
	codeList(c, &k.Units, codeUnit)
	codePointer(c, &k.Child, codeScope)
}

func codeClosing(c *codec, cl *Closing) {
	codeText(c, &cl.Status)
	codeText(c, &cl.Error)
	codeList(c, &cl.Undone, codeUndo)
	c.bool(&cl.Final)
	codePointer(c, &cl.Scope, codeScope)
}

func codeUndo(c *codec, u *Undo) {
	codeText(c, &u.Scope)
	codeText(c, &u.Node)
	c.int(&u.Visit)
	codeText(c, &u.By)
	c.raw(&u.Input)
	c.raw(&u.Output)
}
