package compat

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const transient, unknownCommit = "TransientTransactionError", "UnknownTransactionCommitResult"

var ctx = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func value[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

func equal(t testing.TB, expected, actual any) {
	t.Helper()
	if !reflect.DeepEqual(expected, actual) {
		t.Fatalf("expected %v, got %v", expected, actual)
	}
}

// scene is a client that remembers what it sent, and a database with two documents.
type scene struct {
	t      testing.TB
	server *server
	client *mongo.Client
	db     *mongo.Database
	things *mongo.Collection
	mutex  sync.Mutex
	sent   []*event.CommandStartedEvent
}

func newScene(t testing.TB) *scene {
	s := &scene{t: t, server: newServer(t)}
	monitor := &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.sent = append(s.sent, e)
	}}
	client, err := mongo.Connect(options.Client().ApplyURI(s.server.start()).SetMonitor(monitor).SetServerSelectionTimeout(20 * time.Second))
	must(t, err)
	s.client = client
	t.Cleanup(func() { must(t, client.Disconnect(ctx)) })
	s.db = client.Database("compat")
	s.things = s.db.Collection("things")
	_, err = s.things.InsertMany(ctx, []any{bson.M{"_id": "a", "n": int32(0)}, bson.M{"_id": "b", "n": int32(0)}})
	must(t, err)
	s.sent = nil
	return s
}

func (s *scene) named(name string) []bson.Raw {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var found []bson.Raw
	for _, e := range s.sent {
		if e.CommandName == name {
			found = append(found, e.Command)
		}
	}
	return found
}

func (s *scene) forget() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.sent = nil
}

func (s *scene) admin(command bson.D) {
	s.t.Helper()
	must(s.t, s.client.Database("admin").RunCommand(ctx, command).Err())
}

func (s *scene) inject(times int, command string, data bson.D) {
	s.t.Helper()
	data = append(data, bson.E{Key: "failCommands", Value: bson.A{command}})
	s.admin(bson.D{{"configureFailPoint", "failCommand"}, {"mode", bson.D{{"times", times}}}, {"data", data}})
}

func (s *scene) session(o ...*options.SessionOptionsBuilder) *mongo.Session {
	var list []options.Lister[options.SessionOptions]
	for _, each := range o {
		list = append(list, each)
	}
	session, err := s.client.StartSession(list...)
	must(s.t, err)
	s.t.Cleanup(func() { session.EndSession(ctx) })
	return session
}

func (s *scene) numbers() map[string]int32 {
	s.t.Helper()
	var all []struct {
		ID string `bson:"_id"`
		N  int32
	}
	must(s.t, value(s.things.Find(ctx, bson.D{}))(s.t).All(ctx, &all))
	found := map[string]int32{}
	for _, each := range all {
		found[each.ID] = each.N
	}
	return found
}

func (s *scene) number(c context.Context, id string) (int32, error) {
	var found struct{ N int32 }
	err := s.things.FindOne(c, bson.M{"_id": id}).Decode(&found)
	return found.N, err
}

func (s *scene) add(c context.Context, id string, n int32) error {
	_, err := s.things.UpdateOne(c, bson.M{"_id": id}, bson.M{"$inc": bson.M{"n": n}})
	return err
}

// fails checks an error's code and whether it is transient; code 0 stands for a broken connection.
func (s *scene) fails(code int, isTransient bool, err error) {
	s.t.Helper()
	var fromServer mongo.ServerError
	if !errors.As(err, &fromServer) {
		s.t.Fatalf("no error of a server: %v", err)
	}
	if code != 0 && !fromServer.HasErrorCode(code) {
		s.t.Fatalf("not code %d: %v", code, err)
	}
	equal(s.t, isTransient, fromServer.HasErrorLabel(transient))
}
