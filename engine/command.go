package engine

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/codec"
)

// Tags of commands in messages. A tag is never reused with another meaning. Commands without a tag
// never leave the member.
const (
	tagSignal byte = iota + 1
	tagCancel
	tagRetry
	tagAppend
	tagPause
	tagResume
	tagClaim
	tagExtend
	tagGiveBack
	tagNote
	tagReport
	tagBegin
	tagGranted
	tagEvict
	tagInquire
	tagBring
	tagRetryNode
	tagHold
	tagRelease
	tagAnswer
	tagWorking
	tagRecordSteps
	tagReleaseFunction
)

// codeCommand encodes or decodes a command. The tag of the command comes first.
func codeCommand(c *codec.Codec, cmd *flow.Command) {
	if c.Reading() {
		*cmd = readCommand(c)
		return
	}
	switch v := (*cmd).(type) {
	case flow.Signal:
		writeTagged(c, tagSignal, v, codeSignal)
	case flow.Answer:
		writeTagged(c, tagAnswer, v, codeAnswer)
	case flow.Cancel:
		writeTagged(c, tagCancel, v, codeCancel)
	case flow.RetryTask:
		if v.Node == "" {
			writeTagged(c, tagRetry, v, codeNothing)
			return
		}
		writeTagged(c, tagRetryNode, v, codeRetry)
	case flow.Append:
		writeTagged(c, tagAppend, v, codeAppend)
	case flow.HoldStep:
		writeTagged(c, tagHold, v.Address, codeAddress)
	case flow.ReleaseStep:
		writeTagged(c, tagRelease, v.Address, codeAddress)
	case flow.Pause:
		writeTagged(c, tagPause, v, codeNothing)
	case flow.Resume:
		writeTagged(c, tagResume, v, codeNothing)
	case flow.Claim:
		writeTagged(c, tagClaim, v, codeClaim)
	case flow.Extend:
		writeTagged(c, tagExtend, v, codeExtend)
	case flow.GiveBack:
		writeTagged(c, tagGiveBack, v, codeGiveBack)
	case flow.Note:
		writeTagged(c, tagNote, v, codeNote)
	case flow.Report:
		writeTagged(c, tagReport, v, codeReport)
	case flow.Begin:
		writeTagged(c, tagBegin, v, codeBegin)
	case flow.Working:
		writeTagged(c, tagWorking, v, codeWorking)
	case flow.Granted:
		writeTagged(c, tagGranted, v, codeGranted)
	case flow.Evict:
		writeTagged(c, tagEvict, v, codeEvict)
	case flow.Inquire:
		writeTagged(c, tagInquire, v, codeInquire)
	case flow.Bring:
		writeTagged(c, tagBring, v, codeBring)
	case flow.RecordSteps:
		writeTagged(c, tagRecordSteps, v, codeRecordSteps)
	case flow.ReleaseFunction:
		writeTagged(c, tagReleaseFunction, v, codeReleaseFunction)
	default:
		c.Fail("a command of a member's own is in it")
	}
}

func writeTagged[T any](c *codec.Codec, which byte, v T, code func(*codec.Codec, *T)) {
	c.Byte(&which)
	code(c, &v)
}

func readCommand(c *codec.Codec) flow.Command {
	var which byte
	c.Byte(&which)
	switch which {
	case tagSignal:
		return readValue(c, codeSignal)
	case tagAnswer:
		return readValue(c, codeAnswer)
	case tagCancel:
		return readValue(c, codeCancel)
	case tagRetry:
		return flow.RetryTask{}
	case tagHold:
		return flow.HoldStep{Address: readValue(c, codeAddress)}
	case tagRelease:
		return flow.ReleaseStep{Address: readValue(c, codeAddress)}
	case tagRetryNode:
		return readValue(c, codeRetry)
	case tagAppend:
		return readValue(c, codeAppend)
	case tagPause:
		return flow.Pause{}
	case tagResume:
		return flow.Resume{}
	case tagClaim:
		return readValue(c, codeClaim)
	case tagExtend:
		return readValue(c, codeExtend)
	case tagGiveBack:
		return readValue(c, codeGiveBack)
	case tagNote:
		return readValue(c, codeNote)
	case tagReport:
		return readValue(c, codeReport)
	case tagBegin:
		return readValue(c, codeBegin)
	case tagWorking:
		return readValue(c, codeWorking)
	case tagGranted:
		return readValue(c, codeGranted)
	case tagEvict:
		return readValue(c, codeEvict)
	case tagInquire:
		return readValue(c, codeInquire)
	case tagBring:
		return readValue(c, codeBring)
	case tagRecordSteps:
		return readValue(c, codeRecordSteps)
	case tagReleaseFunction:
		return readValue(c, codeReleaseFunction)
	}
	c.Fail(codec.NoSuch)
	return nil
}

func readValue[T any](c *codec.Codec, code func(*codec.Codec, *T)) (v T) {
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
	codec.Pointer(c, &v.GivenUp, codeGivenUp)
}

func codeGivenUp(c *codec.Codec, v *flow.GivenUp) {
	codec.Text(c, &v.Reason)
	codec.List(c, &v.Waits, codeWait)
	c.Bool(&v.Restarts)
}

func codeWait(c *codec.Codec, v *flow.CodeWait) {
	codec.Text(c, &v.Name)
	c.Int(&v.Use)
	codec.Text(c, &v.Kind)
	codec.Text(c, &v.Key)
	c.Int64(&v.MS)
	c.Raw(&v.Question)
	c.Int(&v.Tries)
	codec.Text(c, &v.Error)
	codec.Pointer(c, &v.Job, codeCalledJob)
}

func codeCalledJob(c *codec.Codec, v *flow.CodeJob) {
	codec.Text(c, &v.Exec)
	codec.Text(c, &v.Service)
	codec.Text(c, &v.Func)
	c.Raw(&v.Input)
	codec.Text(c, &v.Hash)
	c.Int(&v.Retries)
	c.Int64(&v.PauseMS)
	c.Int64(&v.TimeoutMS)
}

func codeRecordSteps(c *codec.Codec, v *flow.RecordSteps) {
	codeAddress(c, &v.Address)
	c.Int(&v.Given)
	codec.List(c, &v.Steps, codeRecordedStep)
	codec.List(c, &v.Waits, codeWait)
}

func codeReleaseFunction(c *codec.Codec, v *flow.ReleaseFunction) {
	codeAddress(c, &v.Address)
	c.Int(&v.Given)
}

func codeRecordedStep(c *codec.Codec, v *flow.CodeStep) {
	codec.Text(c, &v.Name)
	c.Int(&v.Use)
	codec.Text(c, &v.Kind)
	codec.Text(c, &v.Hash)
	c.Raw(&v.Output)
	codec.Text(c, &v.Error)
	c.Raw(&v.Details)
	c.Int(&v.Tries)
	c.Int64(&v.StartedAt)
	c.Int64(&v.EndedAt)
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
