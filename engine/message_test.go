package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/types"
)

// travel are the commands that may be sent to other members.
var travel = []flow.Command{
	flow.Signal{}, flow.Answer{}, flow.Cancel{}, flow.RetryTask{}, flow.Append{}, flow.Pause{},
	flow.Resume{}, flow.HoldStep{}, flow.ReleaseStep{},
	flow.Claim{}, flow.Extend{}, flow.GiveBack{}, flow.Note{}, flow.Report{}, flow.Begin{},
	flow.Working{}, flow.Granted{}, flow.Evict{}, flow.Inquire{}, flow.Bring{},
	flow.RecordSteps{}, flow.ReleaseFunction{},
}

// stay are the commands that a member uses only for its own tasks. A task is started by a NewTask.
var stay = []flow.Command{
	flow.Start{}, flow.Ring{}, flow.Lapse{}, flow.Proceed{}, flow.Leave{}, flow.Recover{}, flow.FailStep{}, flow.Reports{},
}

func messages() []Message {
	return []Message{&NewTask{}, &Orders{}, &Poll{}, &Started{}, &Outcomes{}, &Jobs{}, &Refusal{},
		&Wait{}, &Waited{}, &Follow{}, &Row{}, &Offers{}, &Errands{}, &News{}, &Keys{}, &Heard{}, &Credits{}, &Exchange{}, &Exchanged{}}
}

// filler makes random values of any type that a message may have.
type filler struct{ *rand.Rand }

func (f filler) fill(v reflect.Value) {
	switch target := v.Addr().Interface().(type) {
	case *json.RawMessage:
		*target = f.value()
		return
	case *flow.Command:
		cmd := reflect.New(reflect.TypeOf(travel[f.IntN(len(travel))])).Elem()
		f.fill(cmd)
		*target = cmd.Interface().(flow.Command)
		return
	case *error:
		*target = f.err()
		return
	case *flow.Event:
		target.Type, target.At = flow.AttemptEnded, 1+f.Int64N(1<<40)
		target.Node, target.Output, target.Error = f.text(), f.value(), f.text()
		return
	}
	f.fillKind(v)
}

func (f filler) fillKind(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	case reflect.Slice:
		for range f.IntN(4) {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			f.fill(v.Index(v.Len() - 1))
		}
	case reflect.Map:
		for range f.IntN(4) {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			value := reflect.New(v.Type().Elem()).Elem()
			f.fill(value)
			v.SetMapIndex(reflect.ValueOf(f.text()), value)
		}
	case reflect.Pointer:
		if f.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem())
		}
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.Uint64() >> f.IntN(64)))
	case reflect.Uint8:
		v.SetUint(uint64(f.IntN(256)))
	default:
		panic("a message has a field of a kind this test does not know: " + v.Type().String())
	}
}

func (f filler) text() string {
	return strings.Repeat([]string{"a", "é", "\x00", "/"}[f.IntN(4)], f.IntN(3))
}

// value returns a small value, or one of three large ones, each of which must be written only once.
func (f filler) value() json.RawMessage {
	switch f.IntN(3) {
	case 0:
		return nil
	case 1:
		return json.RawMessage(fmt.Sprintf(`{"b": %d, "a":1.0}`, f.IntN(9)))
	}
	return json.RawMessage(`"` + strings.Repeat(fmt.Sprint(f.IntN(3)), 500) + `"`)
}

// err returns an error in the form that arrives from another member, so that it can be compared.
func (f filler) err() error {
	names := []string{"", "invalid", "not_found", "conflict", "limit", "busy", "denied", "moved",
		nameUnavailable, nameDeadline, nameCanceled, nameInternal}
	return decodeError(names[f.IntN(len(names))], f.text()+"text")
}

func TestProblemsOfInputsTravelBetweenMembers(t *testing.T) {
	bad := &flow.BadInputs{Problems: types.Problems{{Path: []string{"items", "[2]", "sku"},
		Msg: "is missing"}, {Path: []string{"x"}, Msg: "is not declared"}}}
	b, err := Marshal(&Refusal{Err: fmt.Errorf("starting: %w", bad)})
	require.NoError(t, err)
	got, err := Unmarshal(b)
	require.NoError(t, err)
	require.Equal(t, &Refusal{Err: bad}, got)
}

func TestMessagesArriveAsTheyWereSent(t *testing.T) {
	for seed := range uint64(2000) {
		f := filler{rand.New(rand.NewPCG(seed, 0))}
		for _, sent := range messages() {
			f.fill(reflect.ValueOf(sent).Elem())
			if r, ok := sent.(*Refusal); ok && r.Err == nil {
				continue
			}
			b, err := Marshal(sent)
			require.NoError(t, err, "seed %d", seed)
			got, err := Unmarshal(b)
			require.NoError(t, err, "seed %d: %#v", seed, sent)
			require.Equal(t, sent, got, "seed %d", seed)
		}
	}
}

// A new command must be added here to one of the two lists.
func TestEveryCommandIsListedAsRemoteOrLocal(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../flow/command.go", nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	declared := map[string]bool{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "isCommand" {
			declared[f.Recv.List[0].Type.(*ast.Ident).Name] = true
		}
	}
	var known []string
	for _, cmd := range slices.Concat(travel, stay) {
		known = append(known, reflect.TypeOf(cmd).Name())
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(declared)), known)
}

func TestLocalCommandsAreNotSent(t *testing.T) {
	for _, cmd := range append(stay, nil) {
		_, err := Marshal(&Orders{{Task: "t", Command: cmd}})
		require.Equal(t, flow.Invalid, flow.ErrorKindOf(err), "%T", cmd)
	}
}

func TestALargeValueIsSentOnce(t *testing.T) {
	params := json.RawMessage(`"` + strings.Repeat("x", 10_000) + `"`)
	jobs := make(Jobs, 100)
	for i := range jobs {
		jobs[i].Job.Params = slices.Clone(params)
	}
	b, err := Marshal(&jobs)
	require.NoError(t, err)
	require.Less(t, len(b), 2*len(params))
}

func TestErrorsKeepTheirMeaning(t *testing.T) {
	for name, tt := range map[string]struct {
		sent error
		is   error
		kind flow.ErrorKind
	}{
		"unknown task":         {sent: flow.Errorf(flow.NotFound, "there is no task t"), kind: flow.NotFound},
		"busy":                 {sent: flow.Errorf(flow.Busy, "try again"), kind: flow.Busy},
		"moved":                {sent: flow.Errorf(flow.Moved, "ask again"), kind: flow.Moved},
		"wrapped":              {sent: fmt.Errorf("reading: %w", flow.Errorf(flow.Limit, "too much")), kind: flow.Limit},
		"the store is away":    {sent: fmt.Errorf("%w: refused", ErrUnavailable), is: ErrUnavailable},
		"the time is up":       {sent: fmt.Errorf("asking: %w", context.DeadlineExceeded), is: context.DeadlineExceeded},
		"the caller gave up":   {sent: context.Canceled, is: context.Canceled},
		"something else":       {sent: errors.New("disk on fire")},
		"without a known kind": {sent: &flow.Error{Kind: "new", Msg: "of another release"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := Marshal(&Refusal{tt.sent})
			require.NoError(t, err)
			m, err := Unmarshal(b)
			require.NoError(t, err)
			got := m.(*Refusal).Err
			require.Error(t, got)
			require.Equal(t, tt.kind, flow.ErrorKindOf(got))
			if tt.is != nil {
				require.ErrorIs(t, got, tt.is)
			}
			var e *flow.Error
			if errors.As(tt.sent, &e) {
				require.Equal(t, e.Msg, got.Error())
			} else {
				require.Equal(t, tt.sent.Error(), got.Error())
			}
		})
	}
}

func TestInvalidMessagesAreRejected(t *testing.T) {
	whole, err := Marshal(&Orders{{Task: "t", Command: flow.Signal{Key: "k", Value: json.RawMessage(`1`)}}})
	require.NoError(t, err)
	for name, b := range map[string][]byte{
		"nothing":                   nil,
		"a version alone":           {messageVersion},
		"another version":           append([]byte{messageVersion + 1}, whole[1:]...),
		"a kind there is not":       {messageVersion, 200},
		"cut short":                 whole[:len(whole)-1],
		"something behind its end":  append(slices.Clone(whole), 0),
		"a list of billions":        {messageVersion, (*Orders)(nil).messageKind(), 0xff, 0xff, 0xff, 0xff, 0x7f},
		"a command there is not":    {messageVersion, (*Orders)(nil).messageKind(), 2, 0, 0, 0, 99},
		"a truth that is neither":   {messageVersion, (*Started)(nil).messageKind(), 0, 2},
		"events that are none":      {messageVersion, (*Outcomes)(nil).messageKind(), 2, 0, 6, '{', '}', '!', 0, 0, 0, 0},
		"a value that was not sent": {messageVersion, (*NewTask)(nil).messageKind(), 0, 0, 1, 0, 0, 0},
	} {
		_, err := Unmarshal(b)
		require.Equal(t, flow.Invalid, flow.ErrorKindOf(err), name)
	}
	_, err = Unmarshal([]byte{messageVersion + 1, 1})
	require.ErrorContains(t, err, "run the same release")
}

// FuzzUnmarshal checks that any input is rejected, or is a message that can be sent on.
func FuzzUnmarshal(f *testing.F) {
	for seed := range uint64(20) {
		r := filler{rand.New(rand.NewPCG(seed, 0))}
		for _, m := range messages() {
			r.fill(reflect.ValueOf(m).Elem())
			b, err := Marshal(m)
			require.NoError(f, err)
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Unmarshal(b)
		if err != nil {
			return
		}
		again, err := Marshal(m)
		require.NoError(t, err)
		back, err := Unmarshal(again)
		require.NoError(t, err)
		third, err := Marshal(back)
		require.NoError(t, err)
		require.Equal(t, again, third)
	})
}

func TestAPollMayWaitForAnyTime(t *testing.T) {
	b, err := Marshal(&Poll{Worker: "w", Wait: time.Minute})
	require.NoError(t, err)
	got, err := Unmarshal(b)
	require.NoError(t, err)
	require.Equal(t, &Poll{Worker: "w", Wait: time.Minute}, got)
}
