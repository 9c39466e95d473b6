package cluster

import "github.com/troupe-engine/troupe/persistence"

// logMembership logs the members that joined and left between two views.
func (k *Keeper) logMembership(before, now *View) {
	if len(before.Members) == 0 { // this member has just joined
		k.logJoined(now)
		return
	}
	for _, m := range now.Members {
		was, known := before.Member(m.Incarnation)
		switch {
		case m.Incarnation == k.me:
			k.logDraining("this member", was, m)
		case m.FencedAt == 0 && !known:
			k.cfg.Log.Info("member joined", "member", m.Name, "incarnation", m.Incarnation, "url", m.URL, "version", m.Version)
		case m.FencedAt == 0:
			k.logDraining("member", was, m)
		case known && was.FencedAt == 0 && m.Left():
			k.cfg.Log.Info("member left", "member", m.Name, "incarnation", m.Incarnation)
		case known && was.FencedAt == 0 && !k.fenced[m.Incarnation]:
			k.cfg.Log.Warn("member is gone: its lease expired and another member fenced it",
				"member", m.Name, "incarnation", m.Incarnation)
		}
	}
}

// logJoined logs the members that existed before this member joined.
func (k *Keeper) logJoined(now *View) {
	others := []string{}
	for _, m := range now.Living() {
		if m.Incarnation != k.me {
			others = append(others, m.Name)
		}
	}
	k.cfg.Log.Info("joined the cluster", "members", others)
}

func (k *Keeper) logDraining(who string, was, is persistence.MemberRow) {
	if was.Draining == is.Draining {
		return
	}
	does := "takes tasks again"
	if is.Draining {
		does = "is draining"
	}
	k.cfg.Log.Info(who+" "+does, "member", is.Name, "incarnation", is.Incarnation)
}
