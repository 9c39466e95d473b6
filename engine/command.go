package engine

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/codec"
)

// Commands by the byte that stands for them. A byte is never given another meaning. What is missing here a member
// says only to its own tasks.
const (
	aSignal byte = iota + 1
	aCancel
	aRetry
	anAppend
	aPause
	aResume
	aClaim
	anExtend
	aGiveBack
	aNote
	aReport
	aBegin
	aGranted
	anEvict
	anInquire
	aBring
	aRetryOf
	aHold
	aRelease
	anAnswer
	aWorking
)

// codeCommand reads or writes a command with the byte in front that says which.
func codeCommand(c *codec.Codec, cmd *flow.Command) {
	if c.Reading() {
		*cmd = readCommand(c)
		return
	}
	switch v := (*cmd).(type) {
	case flow.Signal:
		write(c, aSignal, v, codeSignal)
	case flow.Answer:
		write(c, anAnswer, v, codeAnswer)
	case flow.Cancel:
		write(c, aCancel, v, codeCancel)
	case flow.RetryTask:
		if v.Node == "" {
			write(c, aRetry, v, codeNothing)
			return
		}
		write(c, aRetryOf, v, codeRetry)
	case flow.Append:
		write(c, anAppend, v, codeAppend)
	case flow.HoldStep:
		write(c, aHold, v.Address, codeAddress)
	case flow.ReleaseStep:
		write(c, aRelease, v.Address, codeAddress)
	case flow.Pause:
		write(c, aPause, v, codeNothing)
	case flow.Resume:
		write(c, aResume, v, codeNothing)
	case flow.Claim:
		write(c, aClaim, v, codeClaim)
	case flow.Extend:
		write(c, anExtend, v, codeExtend)
	case flow.GiveBack:
		write(c, aGiveBack, v, codeGiveBack)
	case flow.Note:
		write(c, aNote, v, codeNote)
	case flow.Report:
		write(c, aReport, v, codeReport)
	case flow.Begin:
		write(c, aBegin, v, codeBegin)
	case flow.Working:
		write(c, aWorking, v, codeWorking)
	case flow.Granted:
		write(c, aGranted, v, codeGranted)
	case flow.Evict:
		write(c, anEvict, v, codeEvict)
	case flow.Inquire:
		write(c, anInquire, v, codeInquire)
	case flow.Bring:
		write(c, aBring, v, codeBring)
	default:
		c.Fail("a command of a member's own is in it")
	}
}

func write[T any](c *codec.Codec, which byte, v T, code func(*codec.Codec, *T)) {
	c.Byte(&which)
	code(c, &v)
}

func readCommand(c *codec.Codec) flow.Command {
	var which byte
	c.Byte(&which)
	switch which {
	case aSignal:
		return value(c, codeSignal)
	case anAnswer:
		return value(c, codeAnswer)
	case aCancel:
		return value(c, codeCancel)
	case aRetry:
		return flow.RetryTask{}
	case aHold:
		return flow.HoldStep{Address: value(c, codeAddress)}
	case aRelease:
		return flow.ReleaseStep{Address: value(c, codeAddress)}
	case aRetryOf:
		return value(c, codeRetry)
	case anAppend:
		return value(c, codeAppend)
	case aPause:
		return flow.Pause{}
	case aResume:
		return flow.Resume{}
	case aClaim:
		return value(c, codeClaim)
	case anExtend:
		return value(c, codeExtend)
	case aGiveBack:
		return value(c, codeGiveBack)
	case aNote:
		return value(c, codeNote)
	case aReport:
		return value(c, codeReport)
	case aBegin:
		return value(c, codeBegin)
	case aWorking:
		return value(c, codeWorking)
	case aGranted:
		return value(c, codeGranted)
	case anEvict:
		return value(c, codeEvict)
	case anInquire:
		return value(c, codeInquire)
	case aBring:
		return value(c, codeBring)
	}
	c.Fail(codec.NoSuch)
	return nil
}

func value[T any](c *codec.Codec, code func(*codec.Codec, *T)) (v T) {
	code(c, &v)
	return v
}

func codeNothing[T any](*codec.Codec, *T) {}

func codeAddress(c *codec.Codec, a *flow.Address) {
	codec.Text(c, &a.Scope)
	codec.Text(c, &a.Node)
	c.Int(&a.Visit)
	c.Int(&a.Unit)
	c.Int(&a.Attempt)
}

func codeSignal(c *codec.Codec, v *flow.Signal) {
	codec.Text(c, &v.Key)
	c.Raw(&v.Value)
	codec.Text(c, &v.By)
	c.Bool(&v.Alive)
}

func codeAnswer(c *codec.Codec, v *flow.Answer) {
	codeAddress(c, &v.Address)
	codec.Text(c, &v.Action)
	c.Raw(&v.Value)
	codec.Text(c, &v.By)
	codec.Text(c, &v.Comment)
}

func codeRetry(c *codec.Codec, v *flow.RetryTask) { codec.Text(c, &v.Node) }

func codeCancel(c *codec.Codec, v *flow.Cancel) {
	c.Bool(&v.Gently)
	c.Bool(&v.Force)
}

func codeAppend(c *codec.Codec, v *flow.Append) {
	codeAddress(c, &v.Address)
	codec.List(c, &v.Items, func(c *codec.Codec, item *json.RawMessage) { c.Raw(item) })
	codec.Text(c, &v.Route)
}

func codeClaim(c *codec.Codec, v *flow.Claim) {
	codeAddress(c, &v.Address)
	codec.Text(c, &v.Worker)
	codec.Text(c, &v.Token)
	c.Int64(&v.Since)
	c.Int64(&v.Until)
}

func codeExtend(c *codec.Codec, v *flow.Extend) {
	codeAddress(c, &v.Address)
	codec.Text(c, &v.Worker)
	codec.Text(c, &v.Token)
	c.Int64(&v.Until)
	c.Int64(&v.MS)
}

func codeGiveBack(c *codec.Codec, v *flow.GiveBack) {
	codeAddress(c, &v.Address)
	codec.Text(c, &v.Token)
}

func codeNote(c *codec.Codec, v *flow.Note) {
	codeAddress(c, &v.Address)
	codec.Text(c, &v.Token)
	codec.Text(c, &v.Text)
}

func codeWorking(c *codec.Codec, v *flow.Working) {
	codeAddress(c, &v.Address)
	c.Int64(&v.At)
}

func codeBegin(c *codec.Codec, v *flow.Begin) {
	codeAddress(c, &v.Address)
	codec.Text(c, &v.Carrier)
}

func codeInquire(c *codec.Codec, v *flow.Inquire) {
	codeAddress(c, &v.Address)
	codec.Text(c, &v.Carrier)
	c.Int(&v.Given)
}

func codeBring(c *codec.Codec, v *flow.Bring) {
	codeAddress(c, &v.Address)
	codec.Text(c, &v.Carrier)
	codec.Text(c, &v.Worker)
	c.Int(&v.Given)
	c.Int64(&v.Since)
}

func codeReport(c *codec.Codec, v *flow.Report) {
	codeAddress(c, &v.Address)
	c.Raw(&v.Output)
	codec.Text(c, &v.Error)
	c.Raw(&v.Details)
	c.Raw(&v.Metrics)
	c.Bool(&v.Fatal)
	c.Bool(&v.TimedOut)
	codec.Text(c, &v.Worker)
	codec.Text(c, &v.URL)
	codec.Text(c, &v.Token)
	c.Bool(&v.Log)
	codec.List(c, &v.Deferred, codeExternal)
	c.Bool(&v.Poller)
	c.Bool(&v.Direct)
	c.Bool(&v.Lost)
	c.Bool(&v.Unbegun)
	c.Int(&v.Given)
	codec.Text(c, &v.To)
}

func codeExternal(c *codec.Codec, v *flow.External) {
	codec.Text(c, &v.Task)
	codec.Text(c, &v.Job)
	c.Int(&v.Index)
	codec.Text(c, &v.Service)
	codec.Text(c, &v.ID)
	c.Raw(&v.Data)
	c.Raw(&v.Memo)
	c.Int64(&v.StartedAt)
	c.Int(&v.Polls)
	c.Int(&v.Failures)
	c.Int64(&v.FailingAt)
	c.Bool(&v.Pending)
}

func codeGranted(c *codec.Codec, v *flow.Granted) {
	codeAddress(c, &v.Address)
	codec.Text(c, &v.Key)
	c.Bool(&v.Refused)
}

func codeEvict(c *codec.Codec, v *flow.Evict) {
	codeAddress(c, &v.Address)
	codec.Text(c, &v.Key)
}
