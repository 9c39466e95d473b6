package cluster

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow/codec"
)

// frameItem is one message between two members: a request or its response, which has the same
// number.
type frameItem struct {
	number    int64  // 0 means a notice without a response
	remaining int64  // milliseconds that the caller still waits; 0 means no limit
	bytes     []byte // an encoded engine.Message; empty means that the caller no longer waits
}

// frame is a list of items that are sent together.
type frame []frameItem

// size returns the approximate number of bytes of an item.
func (it *frameItem) size() int { return len(it.bytes) + 16 }

func (f *frame) codeItems(c *codec.Codec) {
	codec.List(c, (*[]frameItem)(f), func(c *codec.Codec, it *frameItem) {
		c.Int64(&it.number)
		c.Int64(&it.remaining)
		codec.Bytes(c, &it.bytes)
	})
}

// singleFrame returns a frame with one message.
func singleFrame(m engine.Message) (*frame, error) {
	b, err := engine.Marshal(m)
	if err != nil {
		return nil, err
	}
	return &frame{{bytes: b}}, nil
}

// decodeSingle returns the only message of a frame.
func (f *frame) decodeSingle() (engine.Message, error) {
	if len(*f) != 1 {
		return nil, fmt.Errorf("a single message was expected, there are %d", len(*f))
	}
	return engine.Unmarshal((*f)[0].bytes)
}

// frameCodec makes connect send frames. Engine messages have their own encoding, so no other codec
// is used.
type frameCodec struct{}

func (frameCodec) Name() string { return "troupe" }

func (frameCodec) Marshal(v any) ([]byte, error) { return frameCodec{}.MarshalAppend(nil, v) }

// MarshalAppend appends to b, so that connect can reuse its buffers.
func (frameCodec) MarshalAppend(b []byte, v any) ([]byte, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("a %T is no frame", v)
	}
	c := codec.Write(b)
	f.codeItems(c)
	return c.Bytes(), nil
}

// Unmarshal copies the bytes, because connect reuses its buffers.
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
