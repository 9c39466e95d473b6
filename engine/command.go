package engine

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow"
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
)

// codeCommand reads or writes a command with the byte in front that says which.
func codeCommand(c *codec, cmd *flow.Command) {
	if c.reading {
		*cmd = readCommand(c)
		return
	}
	switch v := (*cmd).(type) {
	case flow.Signal:
		write(c, aSignal, v, codeSignal)
	case flow.Cancel:
		write(c, aCancel, v, codeCancel)
	case flow.RetryTask:
		write(c, aRetry, v, codeNothing)
	case flow.Append:
		write(c, anAppend, v, codeAppend)
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
	default:
		c.fail("a command of a member's own is in it")
	}
}

func write[T any](c *codec, which byte, v T, code func(*codec, *T)) {
	c.byte(&which)
	code(c, &v)
}

func readCommand(c *codec) flow.Command {
	var which byte
	c.byte(&which)
	switch which {
	case aSignal:
		return value(c, codeSignal)
	case aCancel:
		return value(c, codeCancel)
	case aRetry:
		return flow.RetryTask{}
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
	}
	c.fail(noSuch)
	return nil
}

func value[T any](c *codec, code func(*codec, *T)) (v T) {
	code(c, &v)
	return v
}

func codeNothing[T any](*codec, *T) {}

func codeAddress(c *codec, a *flow.Address) {
	c.text(&a.Scope)
	c.text(&a.Node)
	c.int(&a.Visit)
	c.int(&a.Unit)
	c.int(&a.Attempt)
}

func codeSignal(c *codec, v *flow.Signal) {
	c.text(&v.Key)
	c.raw(&v.Value)
}

func codeCancel(c *codec, v *flow.Cancel) {
	c.bool(&v.Gently)
	c.bool(&v.Force)
}

func codeAppend(c *codec, v *flow.Append) {
	codeAddress(c, &v.Address)
	codeList(c, &v.Items, func(c *codec, item *json.RawMessage) { c.raw(item) })
	c.text(&v.Route)
}

func codeClaim(c *codec, v *flow.Claim) {
	codeAddress(c, &v.Address)
	c.text(&v.Worker)
	c.text(&v.Token)
	c.int64(&v.Until)
}

func codeExtend(c *codec, v *flow.Extend) {
	codeAddress(c, &v.Address)
	c.text(&v.Worker)
	c.text(&v.Token)
	c.int64(&v.Until)
	c.int64(&v.MS)
}

func codeGiveBack(c *codec, v *flow.GiveBack) {
	codeAddress(c, &v.Address)
	c.text(&v.Token)
}

func codeNote(c *codec, v *flow.Note) {
	codeAddress(c, &v.Address)
	c.text(&v.Token)
	c.text(&v.Text)
}

func codeReport(c *codec, v *flow.Report) {
	codeAddress(c, &v.Address)
	c.raw(&v.Output)
	c.text(&v.Error)
	c.bool(&v.Fatal)
	c.bool(&v.TimedOut)
	c.text(&v.Worker)
	c.text(&v.URL)
	c.text(&v.Token)
	c.bool(&v.Log)
	c.bool(&v.Poller)
	c.bool(&v.Direct)
}
