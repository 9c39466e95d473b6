package cluster

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/packets"
)

// Path is the path of the service between members.
const Path = "/troupe.cluster.v1.Members/"

const (
	deliverPath = Path + "Deliver" // a stream of requests and responses
	watchPath   = Path + "Watch"   // rows of a journal
)

// mostRead is the maximum size of one frame in bytes. A single message may be larger than a usual
// frame.
const mostRead = 64 << 20

// mostAsked is the maximum number of requests in progress per connection, including waits for the
// end of a task.
const mostAsked = 100_000

// Answerer is the member on this host, which answers only for itself.
type Answerer interface {
	engine.Engine
	// Stirred reports keys with changed permits.
	Stirred(keys engine.Keys)
	// Carry makes the member carry out or stop jobs of other members' tasks.
	Carry(ctx context.Context, errands engine.Errands) error
	// Credited reports which jobs the attached workers of another member can take.
	Credited(c *engine.Credits)
	// Offered reports jobs that pollers of this member may claim.
	Offered(jobs []engine.Offer)
	// Heard passes other news to the member. It returns after the member has recorded the news.
	Heard(news engine.News)
}

// Service answers requests of other members of the cluster.
type Service struct {
	member        Answerer
	authenticator *peerAuthenticator
	routes        *http.ServeMux
}

// NewService returns the service for one incarnation of a member.
func NewService(member Answerer, id Identity, log *slog.Logger) *Service {
	s := &Service{member: member, authenticator: newDoor(id, member.Now, log), routes: http.NewServeMux()}
	options := connect.WithHandlerOptions(connect.WithCodec(frameCodec{}),
		connect.WithReadMaxBytes(mostRead), connect.WithCompression("gzip", nil, nil))
	s.routes.Handle(deliverPath, packets.Answers(connect.NewBidiStreamHandler(deliverPath, s.handleDeliver, options)))
	s.routes.Handle(watchPath, packets.Answers(connect.NewServerStreamHandler(watchPath, s.handleWatch, options)))
	return s
}

// ServeHTTP serves callers that prove the secret and name this incarnation. A stream ends with the
// context of its request, even while no data arrives.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.authenticator.admitRequest(w, r) {
		return
	}
	defer readUntil(r.Context(), w)()
	s.routes.ServeHTTP(w, r)
}

// readUntil ends reads of a request's body when ctx ends. The connection must not be used after the
// request, so end waits for that.
func readUntil(ctx context.Context, w http.ResponseWriter) (end func()) {
	touched := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(touched)
		// only connections in tests lack deadlines
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
	})
	return func() {
		if !stop() {
			<-touched
		}
	}
}

// handleWatch sends the rows of a journal until the task has ended. If the member refuses, the last
// frame is the refusal.
func (s *Service) handleWatch(ctx context.Context, req *connect.Request[frame], to *connect.ServerStream[frame]) error {
	m, err := req.Msg.decodeSingle()
	if err != nil {
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	q, ok := m.(*engine.Follow)
	if !ok {
		return connect.NewError(connect.CodeInvalidArgument, errors.New("this is no question for a journal"))
	}
	for row, refused := range s.member.Watch(ctx, q.Task, q.After) {
		var m engine.Message = &row
		if refused != nil {
			m = &engine.Refusal{Err: refused}
		}
		f, err := singleFrame(m)
		if err != nil {
			return err
		}
		if err := to.Send(f); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// handleDeliver answers the requests of a connection, each as soon as possible. It first sends an
// empty frame, so that the caller can verify the server.
func (s *Service) handleDeliver(ctx context.Context, stream *connect.BidiStream[frame, frame]) error {
	if err := stream.Send(&frame{}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	d := &serverConn{member: s.member, ctx: ctx, out: newOutbox(), answering: map[int64]context.CancelFunc{}}
	var sending sync.WaitGroup
	sending.Go(func() {
		defer cancel()
		d.sendFrames(stream)
	})
	err := d.receiveQuestions(stream)
	cancel()
	d.work.Wait()
	sending.Wait()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// serverConn is the server's side of one connection.
type serverConn struct {
	member Answerer
	ctx    context.Context
	out    *outbox
	work   sync.WaitGroup

	mu        sync.Mutex
	answering map[int64]context.CancelFunc // requests in progress, by number
}

func (d *serverConn) sendFrames(stream *connect.BidiStream[frame, frame]) {
	for {
		f, ok := d.out.nextFrame(d.ctx)
		if !ok || stream.Send(&f) != nil {
			return
		}
	}
}

// receiveQuestions reads requests and starts to answer them. It stops reading while too many
// responses wait.
func (d *serverConn) receiveQuestions(stream *connect.BidiStream[frame, frame]) error {
	for d.out.waitForRoom(d.ctx) {
		f, err := stream.Receive()
		if err != nil {
			return err
		}
		for _, it := range *f {
			d.handleItem(it)
		}
	}
	return d.ctx.Err()
}

func (d *serverConn) handleItem(it frameItem) {
	switch {
	case len(it.bytes) == 0:
		d.cancelQuestion(it.number)
	case it.number == 0:
		Hear(d.member, it.bytes)
	default:
		d.answerQuestion(it)
	}
}

// Hear passes a notice from another member to this member. It ignores unknown notices.
func Hear(member Answerer, told []byte) {
	switch m, _ := engine.Unmarshal(told); m := m.(type) {
	case *engine.Offers:
		member.Offered(*m)
	case *engine.Keys:
		member.Stirred(*m)
	case *engine.Credits:
		member.Credited(m)
	case *engine.News:
		member.Heard(*m)
	}
}

// answerQuestion answers a request in a separate goroutine.
func (d *serverConn) answerQuestion(it frameItem) {
	ctx, cancel := d.ctx, context.CancelFunc(nil)
	if it.remaining > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(it.remaining)*time.Millisecond)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	if !d.registerQuestion(it.number, cancel) {
		cancel()
		d.sendReply(it.number, &engine.Refusal{Err: flow.Errorf(flow.Busy,
			"the member is answering %d questions of this one: try again in a moment", mostAsked)})
		return
	}
	d.work.Go(func() {
		defer d.cancelQuestion(it.number)
		d.sendReply(it.number, Answer(ctx, d.member, it.bytes))
	})
}

func (d *serverConn) sendReply(number int64, m engine.Message) {
	d.out.addItem(frameItem{number: number, bytes: answerOf(m)})
}

// Answer makes the member answer an encoded request of another member.
func Answer(ctx context.Context, member Answerer, question []byte) engine.Message {
	m, err := engine.Unmarshal(question)
	if err != nil {
		return &engine.Refusal{Err: err}
	}
	switch q := m.(type) {
	case *engine.NewTask:
		started, err := member.StartTask(ctx, *q)
		return orRefusal(&started, err)
	case *engine.Orders:
		outcomes, err := member.DoAll(ctx, *q)
		return orRefusal(&outcomes, err)
	case *engine.Exchange:
		done, err := member.Exchange(ctx, *q)
		return orRefusal(&done, err)
	case *engine.Wait:
		return answerWait(ctx, member, q)
	case *engine.News:
		member.Heard(*q)
		return &engine.News{}
	case *engine.Errands:
		return orRefusal(&engine.Heard{}, member.Carry(ctx, *q))
	}
	return &engine.Refusal{Err: flow.Errorf(flow.Invalid, "a %T is no question for a member", m)}
}

func answerWait(ctx context.Context, member Answerer, q *engine.Wait) engine.Message {
	if q.Appears {
		return orRefusal(&engine.Waited{}, member.Appears(ctx, q.Task))
	}
	status, err := member.Await(ctx, q.Task)
	return orRefusal(&engine.Waited{Status: status}, err)
}

func orRefusal(m engine.Message, err error) engine.Message {
	if err != nil {
		return &engine.Refusal{Err: err}
	}
	return m
}

func (d *serverConn) registerQuestion(number int64, cancel context.CancelFunc) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.answering) >= mostAsked {
		return false
	}
	d.answering[number] = cancel
	return true
}

// cancelQuestion ends the context of a request that was answered or whose caller has gone.
func (d *serverConn) cancelQuestion(number int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if cancel := d.answering[number]; cancel != nil {
		cancel()
		delete(d.answering, number)
	}
}
