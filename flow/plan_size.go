package flow

import (
	"unsafe"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Estimated memory of parts of a plan without their contents, in bytes.
const (
	mapEntry   = 40    // key and value of a map, with a share of its empty slots
	programCEL = 1_200 // an empty compiled expression
	perByteCEL = 60    // addition per byte of the expression's text
)

// Size returns the approximate memory of the plan in bytes.
func (p *Plan) Size() int {
	s := sizer{}
	s.addScope(p.Root)
	s.addScope(p.Closing)
	s.addKeys(p.Keys)
	return s.bytes + int(unsafe.Sizeof(*p)) + len(p.Finally) + len(p.FlowID) + len(p.FlowSlug)
}

// sizer counts bytes. A shared expression counts once.
type sizer struct {
	bytes int
	seen  map[*expr.CEL]bool
}

func (s *sizer) addScope(g *PlanScope) {
	if g == nil {
		return
	}
	s.bytes += int(unsafe.Sizeof(*g)) + len(g.Start) + len(g.Result) + g.Inputs.Size()
	if g.Dag != nil {
		s.bytes += int(unsafe.Sizeof(*g.Dag)) + 16*len(g.Dag.List) + len(g.Dag.Leaves)*int(unsafe.Sizeof(Seen{}))
	}
	for _, n := range g.Nodes {
		s.bytes += mapEntry + int(unsafe.Sizeof(*n))
		s.addNode(n)
	}
}

func (s *sizer) addNode(n *PlanNode) {
	s.addTexts(n.Key, n.Name, n.Default, n.Undo, n.Prep.Key, n.Post.OutputKey, n.Post.ActionStatic, n.Post.ActionKey)
	s.addExec(&n.Exec)
	s.bytes += len(n.Params)
	for action, to := range n.Edges {
		s.bytes += mapEntry + len(action) + len(to)
	}
	for key, field := range n.Post.OutputMap {
		s.bytes += mapEntry + len(key) + len(field)
	}
	s.addRef(n.Prep.Ref)
	for i := range n.Prep.Map {
		e := &n.Prep.Map[i]
		s.bytes += int(unsafe.Sizeof(*e)) + len(e.Key) + len(e.Text)
		s.addRef(e.Ref)
	}
	for i := range n.Cases {
		c := &n.Cases[i]
		// includes the compiled condition
		s.bytes += int(unsafe.Sizeof(*c)) + len(c.Action) + 8*len(c.Text)
		s.addCEL(c.CEL)
	}
	s.addEach(n.Each)
	s.addScope(n.Sub)
	s.addKeys(n.Keys)
	s.bytes += n.Out.Size()
	if n.Dag != nil {
		s.addDag(n.Dag)
	}
}

func (s *sizer) addEach(e *Each) {
	if e == nil {
		return
	}
	s.bytes += int(unsafe.Sizeof(*e))
	for i := range e.Branches {
		s.bytes += int(unsafe.Sizeof(e.Branches[i])) + len(e.Branches[i].Name)
		s.addExec(&e.Branches[i].Exec)
	}
	for _, x := range e.Items {
		s.bytes += mapEntry + int(unsafe.Sizeof(x))
		s.addExec(&x)
	}
}

func (s *sizer) addDag(d *PlanDag) {
	s.bytes += int(unsafe.Sizeof(*d)) + 8*(len(d.Deps)+len(d.Dependents)+len(d.Guards)) + len(d.Sees)*int(unsafe.Sizeof(Seen{}))
	s.bytes += 4*(len(d.If)+len(d.IfNot)) + len(d.Static) // includes the compiled patterns
	s.addCEL(d.Expr)
	s.addCEL(d.MapExpr)
	for i := range d.Bindings {
		b := &d.Bindings[i]
		s.bytes += int(unsafe.Sizeof(*b)) + len(b.Name) + len(b.Const)
		s.addPlanRef(b.Ref)
	}
	s.addPlanRef(d.Map)
	s.addPlanRef(d.Items)
	s.addPlanRef(d.Count)
	s.bytes += d.Takes.Size()
}

func (s *sizer) addExec(x *Exec) {
	s.addTexts(x.Service, x.Func)
	s.addTexts(x.Labels...)
	s.bytes += len(x.Params) + len(x.Labels)*int(unsafe.Sizeof(""))
	if c := x.Script; c != nil {
		s.bytes += int(unsafe.Sizeof(*c)) + len(c.Cmd) + len(c.Code) + len(c.WorkDir)
		s.addTexts(c.Args...)
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
				s.addKeyText(&part.Ref.KeyText)
			}
		}
	}
	if p := x.Program; p != nil {
		s.bytes += int(unsafe.Sizeof(*p)) + (len(p.Env)+len(p.Secrets))*mapEntry + p.Container.memorySize()
		s.addTexts(p.allTexts()...)
	}
}

func (s *sizer) addKeys(k *Keys) {
	if k == nil {
		return
	}
	s.bytes += int(unsafe.Sizeof(*k))
	s.addKeyText(&k.Priority)
	for _, l := range []*KeyLimit{k.Concurrency, k.Rate} {
		if l != nil {
			s.bytes += int(unsafe.Sizeof(*l)) + len(l.Name)
			s.addKeyText(&l.Key)
			s.addKeyText(&l.Fair)
		}
	}
}

func (s *sizer) addKeyText(k *KeyText) {
	s.addTexts(k.Text)
	s.addRef(k.Ref)
}

func (s *sizer) addTexts(texts ...string) {
	for _, text := range texts {
		s.bytes += len(text)
	}
}

// addRef counts a path. Each key of a path is a text of its own.
func (s *sizer) addRef(r expr.Ref) { s.bytes += 2 * int(unsafe.Sizeof(r)) }

func (s *sizer) addPlanRef(r *PlanRef) {
	if r != nil {
		s.bytes += int(unsafe.Sizeof(*r)) + len(r.Text)
		s.addRef(r.Ref)
	}
}

func (s *sizer) addCEL(c *expr.CEL) {
	if c == nil || s.seen[c] {
		return
	}
	if s.seen == nil {
		s.seen = map[*expr.CEL]bool{}
	}
	s.seen[c] = true
	s.bytes += programCEL + perByteCEL*len(c.Source())
}
