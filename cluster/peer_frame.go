package cluster

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow/codec"
)

// item is one message on a line between two members: a question or its answer, both by the number of the question.
type item struct {
	number int64  // 0 = it is told, and nothing is answered
	left   int64  // milliseconds that its asker waits; 0 = as long as it takes
	bytes  []byte // of an engine.Message; none = nobody waits for the answer any longer
}

// frame is what is sent at once.
type frame []item

// size is about how many bytes an item takes.
func (it *item) size() int { return len(it.bytes) + 16 }

func (f *frame) code(c *codec.Codec) {
	codec.List(c, (*[]item)(f), func(c *codec.Codec, it *item) {
		c.Int64(&it.number)
		c.Int64(&it.left)
		codec.Bytes(c, &it.bytes)
	})
}

// one is a frame of a single message.
func one(m engine.Message) (*frame, error) {
	b, err := engine.Marshal(m)
	if err != nil {
		return nil, err
	}
	return &frame{{bytes: b}}, nil
}

// message is that of a frame which has a single one.
func (f *frame) message() (engine.Message, error) {
	if len(*f) != 1 {
		return nil, fmt.Errorf("a single message was expected, there are %d", len(*f))
	}
	return engine.Unmarshal((*f)[0].bytes)
}

// frames has connect carry frames. Engine messages have a form of their own, so there is no other codec.
type frames struct{}

func (frames) Name() string { return "troupe" }

func (frames) Marshal(v any) ([]byte, error) { return frames{}.MarshalAppend(nil, v) }

// MarshalAppend has connect use its buffers again.
func (frames) MarshalAppend(b []byte, v any) ([]byte, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("a %T is no frame", v)
	}
	c := codec.Write(b)
	f.code(c)
	return c.Bytes(), nil
}

// Unmarshal copies the bytes: connect uses them again.
func (frames) Unmarshal(b []byte, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("a %T is no frame", v)
	}
	*f = nil
	c := codec.Read(bytes.Clone(b))
	if f.code(c); c.Broken() == "" && len(c.Bytes()) > 0 {
		c.Fail("something follows its end")
	}
	if c.Broken() != "" {
		return errors.New("what another member sends cannot be read: " + c.Broken())
	}
	return nil
}
