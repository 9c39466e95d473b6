package engine

import (
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/codec"
)

// Message is a request or an answer.
type Message interface {
	// messageKind returns the byte that identifies this kind of message. A byte is never reused
	// with another meaning.
	messageKind() byte
	codeFields(c *codec.Codec)
}

func (*NewTask) messageKind() byte   { return 1 }
func (*Orders) messageKind() byte    { return 2 }
func (*Poll) messageKind() byte      { return 3 }
func (*Started) messageKind() byte   { return 4 }
func (*Outcomes) messageKind() byte  { return 5 }
func (*Jobs) messageKind() byte      { return 6 }
func (*Refusal) messageKind() byte   { return 7 }
func (*Wait) messageKind() byte      { return 8 }
func (*Waited) messageKind() byte    { return 9 }
func (*Follow) messageKind() byte    { return 10 }
func (*Row) messageKind() byte       { return 11 }
func (*Offers) messageKind() byte    { return 12 }
func (*Errands) messageKind() byte   { return 13 }
func (*News) messageKind() byte      { return 14 }
func (*Keys) messageKind() byte      { return 15 }
func (*Heard) messageKind() byte     { return 16 }
func (*Credits) messageKind() byte   { return 17 }
func (*Exchange) messageKind() byte  { return 18 }
func (*Exchanged) messageKind() byte { return 19 }

// newMessage returns an empty message of a kind, or nil for an unknown kind.
func newMessage(kind byte) Message {
	for _, m := range []Message{&NewTask{}, &Orders{}, &Poll{}, &Started{}, &Outcomes{}, &Jobs{}, &Refusal{},
		&Wait{}, &Waited{}, &Follow{}, &Row{}, &Offers{}, &Errands{}, &News{}, &Keys{}, &Heard{}, &Credits{}, &Exchange{}, &Exchanged{}} {
		if m.messageKind() == kind {
			return m
		}
	}
	return nil
}

// messageVersion is the version of the message format. All members of a cluster use the same
// version.
const messageVersion = 1

// Marshal encodes a message. It returns an error for orders that must not leave the member.
func Marshal(m Message) ([]byte, error) {
	c := codec.Write([]byte{messageVersion, m.messageKind()})
	if m.codeFields(c); c.Broken() != "" {
		return nil, flow.Errorf(flow.Invalid, "the %T cannot be sent to another member: %s", m, c.Broken())
	}
	return c.Bytes(), nil
}

// Unmarshal decodes a message of Marshal. The values of the message share the memory of b.
func Unmarshal(b []byte) (Message, error) {
	if len(b) < 2 {
		return nil, flow.Errorf(flow.Invalid, "the message of another member cannot be read: %s", codec.CutShort)
	}
	if b[0] != messageVersion {
		return nil, flow.Errorf(flow.Invalid,
			"another member speaks version %d of the members' language, this one %d: run the "+
				"same release of Troupe on both", b[0], messageVersion)
	}
	c, m := codec.Read(b[2:]), newMessage(b[1])
	if m == nil {
		c.Fail(codec.NoSuch)
	} else if m.codeFields(c); c.Broken() == "" && len(c.Bytes()) > 0 {
		c.Fail("something follows its end")
	}
	if c.Broken() != "" {
		return nil, flow.Errorf(flow.Invalid, "the message of another member cannot be read: %s", c.Broken())
	}
	return m, nil
}

func (t *NewTask) codeFields(c *codec.Codec) {
	codec.Text(c, &t.VersionID)
	c.Bool(&t.Newest)
	c.Raw(&t.Params)
	codec.Map(c, &t.Labels, codec.Text[string])
	codec.Text(c, &t.Key)
	codec.Text(c, &t.ID)
	codec.Text(c, &t.Request)
	codec.Text(c, &t.Task)
	codec.Text(c, &t.Fork)
	codec.Text(c, &t.ForkNode)
	c.Int64(&t.ForkRow)
	c.Bool(&t.Anew)
	codec.Pointer(c, &t.Traced, flow.CodeTraced)
	codec.Map(c, &t.Shared, (*codec.Codec).Raw)
	codec.Map(c, &t.Results, (*codec.Codec).Raw)
}

func (s *Started) codeFields(c *codec.Codec) {
	codec.Text(c, &s.Task)
	c.Bool(&s.Created)
}

func (o *Orders) codeFields(c *codec.Codec) { codec.List(c, (*[]Order)(o), codeOrder) }

func codeOrder(c *codec.Codec, o *Order) {
	codec.Text(c, &o.Task)
	codec.Text(c, &o.Request)
	c.Bool(&o.Events)
	codeCommand(c, &o.Command)
}

func (o *Outcomes) codeFields(c *codec.Codec) { codec.List(c, (*[]Outcome)(o), codeOutcome) }

func codeOutcome(c *codec.Codec, o *Outcome) {
	c.Int(&o.Changed)
	codeEvents(c, &o.Events)
	c.Int(&o.First)
	c.Int(&o.Given)
	codec.Pointer(c, &o.Job, codeClaimed)
	c.Int64(&o.Held)
	codeError(c, &o.Err)
}

func (r *Refusal) codeFields(c *codec.Codec) { codeError(c, &r.Err) }

func codeError(c *codec.Codec, err *error) {
	name, text := encodeError(*err)
	codec.Text(c, &name)
	codec.Text(c, &text)
	if c.Reading() {
		*err = decodeError(name, text)
	}
}

// codeEvents encodes events in the format of journals, or decodes them.
func codeEvents(c *codec.Codec, events *[]flow.Event) {
	var row []byte
	if !c.Reading() && len(*events) > 0 {
		row = flow.AppendEvents(nil, *events)
	}
	codec.Bytes(c, &row)
	if !c.Reading() || len(row) == 0 {
		return
	}
	var err error
	if *events, err = flow.DecodeEvents(row); err != nil {
		c.Fail(err.Error())
	}
}

func (p *Poll) codeFields(c *codec.Codec) {
	codec.Text(c, &p.Worker)
	codec.List(c, &p.Services, codec.Text[string])
	codec.Text(c, &p.FlowID)
	codec.List(c, &p.Labels, codec.Text[string])
	c.Int(&p.Max)
	c.Int(&p.Bytes)
	wait := int64(p.Wait)
	c.Int64(&wait)
	if c.Reading() {
		p.Wait = time.Duration(wait)
	}
	c.Bool(&p.Unlisted)
}

func (x *Exchange) codeFields(c *codec.Codec) {
	x.Orders.codeFields(c)
	x.Next.codeFields(c)
}

func (x *Exchanged) codeFields(c *codec.Codec) {
	x.Outcomes.codeFields(c)
	x.Jobs.codeFields(c)
}

func (j *Jobs) codeFields(c *codec.Codec) { codec.List(c, (*[]Claimed)(j), codeClaimed) }

func codeClaimed(c *codec.Codec, j *Claimed) {
	codeJob(c, &j.Job)
	codec.Text(c, &j.Token)
	c.Int64(&j.ClaimedAt)
	c.Int64(&j.Until)
}

func codeJob(c *codec.Codec, j *Job) {
	codec.Text(c, &j.Task)
	codeAddress(c, &j.Address)
	codec.Pointer(c, &j.Since, codeAddress)
	codec.Text(c, &j.Flow)
	codec.Pointer(c, &j.Traced, flow.CodeTraced)
	codec.Text(c, &j.Service)
	codec.List(c, &j.Labels, codec.Text[string])
	c.Raw(&j.Input)
	c.Raw(&j.Params)
	c.Raw(&j.Run)
	codec.Text(c, &j.ParamsKey)
	c.Bool(&j.RunApart)
	codec.Text(c, &j.Branch)
	c.Int(&j.Units)
	c.Int64(&j.TimeoutMS)
	c.Int64(&j.EnqueuedAt)
	c.Int(&j.Deliveries)
}

func (w *Wait) codeFields(c *codec.Codec) {
	codec.Text(c, &w.Task)
	c.Bool(&w.Appears)
}

func (w *Waited) codeFields(c *codec.Codec) { codec.Text(c, &w.Status) }

func (f *Follow) codeFields(c *codec.Codec) {
	codec.Text(c, &f.Task)
	c.Int64(&f.After)
}

func (r *Row) codeFields(c *codec.Codec) {
	c.Int64(&r.Seq)
	c.Int64(&r.At)
	codec.Bytes(c, &r.Events)
}

func (o *Offers) codeFields(c *codec.Codec) { codec.List(c, (*[]Offer)(o), codeOffer) }

func codeOffer(c *codec.Codec, o *Offer) {
	codec.Text(c, &o.Job)
	codec.Text(c, &o.Service)
	codec.Text(c, &o.FlowID)
	codec.List(c, &o.Labels, codec.Text[string])
	c.Int64(&o.At)
	codec.Text(c, &o.Turn)
	c.Int(&o.Size)
}

func (k *Keys) codeFields(c *codec.Codec) {
	codec.List(c, &k.Names, codec.Text[string])
	c.Bool(&k.Anew)
}

func (n *News) codeFields(c *codec.Codec) {
	codec.List(c, &n.Flows, codec.Text[string])
	codec.List(c, &n.Workers, codeWorker)
	codec.List(c, &n.Beats, codeBeat)
}

func codeBeat(c *codec.Codec, b *Beat) {
	codec.Text(c, &b.ID)
	c.Int(&b.Load)
	c.Int64(&b.HeardAt)
}

func codeWorker(c *codec.Codec, w *Worker) {
	codec.Text(c, &w.ID)
	codec.Text(c, &w.URL)
	codec.Text(c, &w.Type)
	codec.Text(c, &w.Secret)
	codec.List(c, &w.Services, codec.Text[string])
	codec.List(c, &w.Labels, codec.Text[string])
	c.Int(&w.Load)
	c.Int64(&w.HeardAt)
	c.Int64(&w.RegisteredAt)
	c.Int64(&w.JoinedAt)
	c.Bool(&w.Gone)
}

func (e *Errands) codeFields(c *codec.Codec) { codec.List(c, (*[]Errand)(e), codeErrand) }

func codeErrand(c *codec.Codec, e *Errand) {
	codeJob(c, &e.Job)
	codec.Text(c, &e.Type)
	codec.List(c, &e.Labels, codec.Text[string])
	c.Int(&e.Given)
	c.Bool(&e.Again)
	c.Bool(&e.Withdrawn)
	c.Bool(&e.Unbegun)
	codec.List(c, &e.Ended, codeRecordedStep)
	codec.Text(c, &e.Func)
	codec.Pointer(c, &e.Function, codeFunctionCall)
}

func codeFunctionCall(c *codec.Codec, f *flow.FunctionCall) {
	codec.List(c, &f.Steps, codeRecordedStep)
	c.Bool(&f.Undoes)
}

func (*Heard) codeFields(*codec.Codec) {}

func (r *Credits) codeFields(c *codec.Codec) {
	codec.Text(c, &r.Member)
	c.Int64(&r.Turn)
	c.Bool(&r.Whole)
	codec.List(c, &r.List, codeCredit)
}

func codeCredit(c *codec.Codec, g *Credit) {
	codec.List(c, &g.Services, codec.Text[string])
	codec.List(c, &g.Labels, codec.Text[string])
	c.Int(&g.Workers)
	c.Int(&g.Free)
}
