package flow

import (
	"unsafe"

	"github.com/troupe-engine/troupe/flow/expr"
)

// What parts of a plan take beside what is in them, in bytes.
const (
	mapEntry   = 40    // a key and a value of a map, with its share of what is empty
	programCEL = 1_200 // a compiled expression that says nothing,
	perByteCEL = 60    // and what each byte of its text adds
)

// Size is about how many bytes of memory the plan takes.
func (p *Plan) Size() int {
	s := sizer{}
	s.graph(p.Root)
	s.graph(p.Closing)
	s.keys(p.Keys)
	return s.bytes + int(unsafe.Sizeof(*p)) + len(p.Finally) + len(p.FlowID) + len(p.FlowSlug)
}

// sizer counts bytes. An expression that is used many times is there once.
type sizer struct {
	bytes int
	seen  map[*expr.CEL]bool
}

func (s *sizer) graph(g *PlanScope) {
	if g == nil {
		return
	}
	s.bytes += int(unsafe.Sizeof(*g)) + len(g.Start) + len(g.Result) + g.Inputs.Size()
	if g.Dag != nil {
		s.bytes += int(unsafe.Sizeof(*g.Dag)) + 16*len(g.Dag.List) + len(g.Dag.Leaves)*int(unsafe.Sizeof(Seen{}))
	}
	for _, n := range g.Nodes {
		s.bytes += mapEntry + int(unsafe.Sizeof(*n))
		s.node(n)
	}
}

func (s *sizer) node(n *PlanNode) {
	s.texts(n.Key, n.Name, n.Default, n.Undo, n.Prep.Key, n.Post.OutputKey, n.Post.ActionStatic, n.Post.ActionKey)
	s.exec(&n.Exec)
	s.bytes += len(n.Params)
	for action, to := range n.Edges {
		s.bytes += mapEntry + len(action) + len(to)
	}
	for key, field := range n.Post.OutputMap {
		s.bytes += mapEntry + len(key) + len(field)
	}
	s.ref(n.Prep.Ref)
	for i := range n.Prep.Map {
		e := &n.Prep.Map[i]
		s.bytes += int(unsafe.Sizeof(*e)) + len(e.Key) + len(e.Text)
		s.ref(e.Ref)
	}
	for i := range n.Cases {
		c := &n.Cases[i]
		s.bytes += int(unsafe.Sizeof(*c)) + len(c.Action) + 8*len(c.Text) // with what a condition is made of
		s.cel(c.CEL)
	}
	s.each(n.Each)
	s.graph(n.Sub)
	s.keys(n.Keys)
	s.bytes += n.Out.Size()
	if n.Dag != nil {
		s.dag(n.Dag)
	}
}

func (s *sizer) each(e *Each) {
	if e == nil {
		return
	}
	s.bytes += int(unsafe.Sizeof(*e))
	for i := range e.Branches {
		s.bytes += int(unsafe.Sizeof(e.Branches[i])) + len(e.Branches[i].Name)
		s.exec(&e.Branches[i].Exec)
	}
	for _, x := range e.Items {
		s.bytes += mapEntry + int(unsafe.Sizeof(x))
		s.exec(&x)
	}
}

func (s *sizer) dag(d *PlanDag) {
	s.bytes += int(unsafe.Sizeof(*d)) + 8*(len(d.Deps)+len(d.Dependents)+len(d.Guards)) + len(d.Sees)*int(unsafe.Sizeof(Seen{}))
	s.bytes += 4*(len(d.If)+len(d.IfNot)) + len(d.Static) // with what a pattern is made of
	s.cel(d.Expr)
	s.cel(d.MapExpr)
	for i := range d.Bindings {
		b := &d.Bindings[i]
		s.bytes += int(unsafe.Sizeof(*b)) + len(b.Name) + len(b.Const)
		s.planRef(b.Ref)
	}
	s.planRef(d.Map)
	s.planRef(d.Items)
	s.planRef(d.Count)
	s.bytes += d.Takes.Size()
}

func (s *sizer) exec(x *Exec) {
	s.texts(x.Service, x.Func)
	s.texts(x.Labels...)
	s.bytes += len(x.Params) + len(x.Labels)*int(unsafe.Sizeof(""))
	if c := x.Script; c != nil {
		s.bytes += int(unsafe.Sizeof(*c)) + len(c.Cmd) + len(c.Code) + len(c.WorkDir)
		s.texts(c.Args...)
		for name, value := range c.Env {
			s.bytes += mapEntry + len(name) + len(value)
		}
	}
	for _, v := range x.Vars {
		s.bytes += int(unsafe.Sizeof(v)) + len(v.Name)
		for _, part := range v.Parts {
			s.bytes += int(unsafe.Sizeof(part)) + len(part.Text)
			if part.Ref != nil {
				s.bytes += int(unsafe.Sizeof(*part.Ref))
				s.keyText(&part.Ref.KeyText)
			}
		}
	}
	if p := x.Program; p != nil {
		s.bytes += int(unsafe.Sizeof(*p)) + (len(p.Env)+len(p.Secrets))*mapEntry + p.Container.size()
		s.texts(p.texts()...)
	}
}

func (s *sizer) keys(k *Keys) {
	if k == nil {
		return
	}
	s.bytes += int(unsafe.Sizeof(*k))
	s.keyText(&k.Priority)
	for _, l := range []*KeyLimit{k.Concurrency, k.Rate} {
		if l != nil {
			s.bytes += int(unsafe.Sizeof(*l)) + len(l.Name)
			s.keyText(&l.Key)
			s.keyText(&l.Fair)
		}
	}
}

func (s *sizer) keyText(k *KeyText) {
	s.texts(k.Text)
	s.ref(k.Ref)
}

func (s *sizer) texts(texts ...string) {
	for _, text := range texts {
		s.bytes += len(text)
	}
}

// ref is a path, each key of which is a text of its own.
func (s *sizer) ref(r expr.Ref) { s.bytes += 2 * int(unsafe.Sizeof(r)) }

func (s *sizer) planRef(r *PlanRef) {
	if r != nil {
		s.bytes += int(unsafe.Sizeof(*r)) + len(r.Text)
		s.ref(r.Ref)
	}
}

func (s *sizer) cel(c *expr.CEL) {
	if c == nil || s.seen[c] {
		return
	}
	if s.seen == nil {
		s.seen = map[*expr.CEL]bool{}
	}
	s.seen[c] = true
	s.bytes += programCEL + perByteCEL*len(c.Source())
}
