package model_test

import (
	"testing"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/model"
	"github.com/troupe-engine/troupe/persistence/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) persistence.Store { return model.New(model.Options{}) })
}
