package model_test

import (
	"testing"

	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/internal/testing/storetest"
	"github.com/troupe-engine/troupe/persistence"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) persistence.Store { return model.New(model.Options{}) })
}
