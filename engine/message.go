package engine

import (
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Message is a question or an answer.
type Message interface {
	// kind is the byte that stands for this kind of message. It is never given another meaning.
	kind() byte
	code(c *codec)
}

func (*NewTask) kind() byte  { return 1 }
func (*Orders) kind() byte   { return 2 }
func (*Poll) kind() byte     { return 3 }
func (*Started) kind() byte  { return 4 }
func (*Outcomes) kind() byte { return 5 }
func (*Jobs) kind() byte     { return 6 }
func (*Refusal) kind() byte  { return 7 }

// empty is a message of a kind; nil = there is no such kind.
func empty(kind byte) Message {
	for _, m := range []Message{&NewTask{}, &Orders{}, &Poll{}, &Started{}, &Outcomes{}, &Jobs{}, &Refusal{}} {
		if m.kind() == kind {
			return m
		}
	}
	return nil
}

// version of the form of messages. Members of one cluster speak the same one.
const version = 1

// Marshal makes bytes of a message. It fails for orders that are no other member's business.
func Marshal(m Message) ([]byte, error) {
	c := &codec{b: []byte{version, m.kind()}}
	if m.code(c); c.broken != "" {
		return nil, flow.Errorf(flow.Invalid, "the %T cannot be sent to another member: %s", m, c.broken)
	}
	return c.b, nil
}

// Unmarshal is the inverse of Marshal. The message shares the bytes.
func Unmarshal(b []byte) (Message, error) {
	if len(b) < 2 {
		return nil, flow.Errorf(flow.Invalid, "the message of another member cannot be read: %s", cutShort)
	}
	if b[0] != version {
		return nil, flow.Errorf(flow.Invalid, "another member speaks version %d of the members' language, this one %d: run the same release of Troupe on both", b[0], version)
	}
	c, m := &codec{b: b[2:], reading: true}, empty(b[1])
	if m == nil {
		c.fail(noSuch)
	} else if m.code(c); c.broken == "" && len(c.b) > 0 {
		c.fail("something follows its end")
	}
	if c.broken != "" {
		return nil, flow.Errorf(flow.Invalid, "the message of another member cannot be read: %s", c.broken)
	}
	return m, nil
}

func (t *NewTask) code(c *codec) {
	c.text(&t.VersionID)
	c.bool(&t.Newest)
	c.raw(&t.Params)
	c.texts(&t.Labels)
	c.text(&t.Key)
	c.text(&t.ID)
}

func (s *Started) code(c *codec) {
	c.text(&s.Task)
	c.bool(&s.Created)
}

func (o *Orders) code(c *codec) { codeList(c, (*[]Order)(o), codeOrder) }

func codeOrder(c *codec, o *Order) {
	c.text(&o.Task)
	c.text(&o.Request)
	codeCommand(c, &o.Command)
}

func (o *Outcomes) code(c *codec) { codeList(c, (*[]Outcome)(o), codeOutcome) }

func codeOutcome(c *codec, o *Outcome) {
	codeEvents(c, &o.Events)
	c.int(&o.First)
	codePointer(c, &o.Job, codeClaimed)
	codeError(c, &o.Err)
}

func (r *Refusal) code(c *codec) { codeError(c, &r.Err) }

func codeError(c *codec, err *error) {
	name, text := spell(*err)
	c.text(&name)
	c.text(&text)
	if c.reading {
		*err = read(name, text)
	}
}

// codeEvents has them as they are in journals.
func codeEvents(c *codec, events *[]flow.Event) {
	var row []byte
	if !c.reading && len(*events) > 0 {
		row = flow.AppendEvents(nil, *events)
	}
	c.bytes(&row)
	if !c.reading || len(row) == 0 {
		return
	}
	var err error
	if *events, err = flow.DecodeEvents(row); err != nil {
		c.fail(err.Error())
	}
}

func (p *Poll) code(c *codec) {
	c.text(&p.Worker)
	codeList(c, &p.Services, (*codec).text)
	c.text(&p.FlowID)
	codeList(c, &p.Labels, (*codec).text)
	c.int(&p.Max)
	wait := int64(p.Wait)
	c.int64(&wait)
	if c.reading {
		p.Wait = time.Duration(wait)
	}
}

func (j *Jobs) code(c *codec) { codeList(c, (*[]Claimed)(j), codeClaimed) }

func codeClaimed(c *codec, j *Claimed) {
	codeJob(c, &j.Job)
	c.text(&j.Token)
	c.int64(&j.ClaimedAt)
	c.int64(&j.Until)
}

func codeJob(c *codec, j *Job) {
	c.text(&j.Task)
	codeAddress(c, &j.Address)
	c.text(&j.Flow)
	c.text(&j.Service)
	c.raw(&j.Input)
	c.raw(&j.Params)
	c.raw(&j.Run)
	c.text(&j.ParamsKey)
	c.bool(&j.RunApart)
	c.text(&j.Branch)
	c.int(&j.Units)
	c.int64(&j.TimeoutMS)
	c.int64(&j.EnqueuedAt)
	c.int(&j.Deliveries)
}
