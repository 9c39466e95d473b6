package cluster

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow/codec"
)

// frameItem is one message on a line between two members: a question or its answer, both by the
// number of the question.
type frameItem struct {
	number    int64  // 0 = it is told, and nothing is answered
	remaining int64  // milliseconds that its asker waits; 0 = as long as it takes
	bytes     []byte // of an engine.Message; none = nobody waits for the answer any longer
}

// frame is what is sent at once.
type frame []frameItem

// size is about how many bytes an item takes.
func (it *frameItem) size() int { return len(it.bytes) + 16 }

func (f *frame) codeItems(c *codec.Codec) {
	codec.List(c, (*[]frameItem)(f), func(c *codec.Codec, it *frameItem) {
		c.Int64(&it.number)
		c.Int64(&it.remaining)
		codec.Bytes(c, &it.bytes)
	})
}

// singleFrame is a frame of a single message.
func singleFrame(m engine.Message) (*frame, error) {
	b, err := engine.Marshal(m)
	if err != nil {
		return nil, err
	}
	return &frame{{bytes: b}}, nil
}

// decodeSingle is that of a frame which has a single one.
func (f *frame) decodeSingle() (engine.Message, error) {
	if len(*f) != 1 {
		return nil, fmt.Errorf("a single message was expected, there are %d", len(*f))
	}
	return engine.Unmarshal((*f)[0].bytes)
}

// frameCodec has connect carry frames. Engine messages have a form of their own, so there is no
// other codec.
type frameCodec struct{}

func (frameCodec) Name() string { return "troupe" }

func (frameCodec) Marshal(v any) ([]byte, error) { return frameCodec{}.MarshalAppend(nil, v) }

// MarshalAppend has connect use its buffers again.
func (frameCodec) MarshalAppend(b []byte, v any) ([]byte, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("a %T is no frame", v)
	}
	c := codec.Write(b)
	f.codeItems(c)
	return c.Bytes(), nil
}

// Unmarshal copies the bytes: connect uses them again.
func (frameCodec) Unmarshal(b []byte, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("a %T is no frame", v)
	}
	*f = nil
	c := codec.Read(bytes.Clone(b))
	if f.codeItems(c); c.Broken() == "" && len(c.Bytes()) > 0 {
		c.Fail("something follows its end")
	}
	if c.Broken() != "" {
		return errors.New("what another member sends cannot be read: " + c.Broken())
	}
	return nil
}
