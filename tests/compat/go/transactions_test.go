package compat

import (
	"context"
	"errors"
	"sort"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

func TestWithTransactionCommitsAndLeavesNothingAfterAnError(t *testing.T) {
	s := newScene(t)
	session := s.session()
	result, err := session.WithTransaction(ctx, func(c context.Context) (any, error) {
		must(t, s.add(c, "a", -5))
		must(t, s.add(c, "b", 5))
		equal(t, int32(-5), value(s.number(c, "a"))(t))
		equal(t, map[string]int32{"a": 0, "b": 0}, s.numbers())
		return "moved", nil
	})
	must(t, err)
	equal(t, "moved", result)
	equal(t, map[string]int32{"a": -5, "b": 5}, s.numbers())
	stop := errors.New("stop")
	_, err = session.WithTransaction(ctx, func(c context.Context) (any, error) {
		must(t, s.add(c, "a", 1))
		return nil, stop
	})
	equal(t, stop, err)
	equal(t, map[string]int32{"a": -5, "b": 5}, s.numbers())
}

func TestAWriteConflictOfTwoSessionsRunsTheCallbackAgain(t *testing.T) {
	s := newScene(t)
	session, other := s.session(), s.session()
	var seen []int32
	_, err := session.WithTransaction(ctx, func(c context.Context) (any, error) {
		n := value(s.number(c, "a"))(t)
		if len(seen) == 0 {
			_, err := other.WithTransaction(ctx, func(c context.Context) (any, error) { return nil, s.add(c, "a", 10) })
			must(t, err)
		}
		seen = append(seen, n)
		_, err := s.things.UpdateOne(c, bson.M{"_id": "a"}, bson.M{"$set": bson.M{"n": n + 1}})
		return nil, err
	})
	must(t, err)
	equal(t, []int32{0, 10}, seen)
	equal(t, map[string]int32{"a": 11, "b": 0}, s.numbers())
}

func TestACommitWhoseReplyIsLostIsRetriedWithOneEffect(t *testing.T) {
	s := newScene(t)
	label := bson.E{Key: "errorLabels", Value: bson.A{"RetryableWriteError"}}
	for i, data := range []bson.D{{{"closeConnection", true}}, {{"errorCode", 91}, label},
		{{"writeConcernError", bson.D{{"code", 91}, {"errmsg", "x"}, label}}}} {
		s.forget()
		s.inject(1, "commitTransaction", data)
		_, err := s.session().WithTransaction(ctx, func(c context.Context) (any, error) { return nil, s.add(c, "a", 1) })
		must(t, err)
		equal(t, map[string]int32{"a": int32(i) + 1, "b": 0}, s.numbers())
		equal(t, 1, len(s.named("update")))
		equal(t, 2, len(s.named("commitTransaction")))
	}
}

func TestStartCommitCommitAgainAbort(t *testing.T) {
	s := newScene(t)
	session := s.session()
	c := mongo.NewSessionContext(ctx, session)
	must(t, session.StartTransaction(options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority())))
	must(t, second(s.things.InsertOne(c, bson.M{"_id": "c", "n": int32(1)})))
	must(t, second(s.things.DeleteOne(c, bson.M{"_id": "b"})))
	must(t, s.things.FindOneAndUpdate(c, bson.M{"_id": "a"}, bson.M{"$inc": bson.M{"n": 7}}).Err())
	must(t, session.CommitTransaction(ctx))
	must(t, session.CommitTransaction(ctx))
	equal(t, map[string]int32{"a": 7, "c": 1}, s.numbers())
	must(t, session.StartTransaction())
	must(t, second(s.things.DeleteMany(c, bson.D{})))
	must(t, session.AbortTransaction(ctx))
	equal(t, 2, len(s.numbers()))
	must(t, session.StartTransaction())
	equal(t, int32(7), value(s.number(c, "a"))(t))
	must(t, s.add(ctx, "a", 2))
	equal(t, int32(7), value(s.number(c, "a"))(t))
	must(t, session.CommitTransaction(ctx))
	equal(t, int32(9), value(s.number(ctx, "a"))(t))
}

func TestLabelsOfErrorsInATransaction(t *testing.T) {
	s := newScene(t)
	first, other := s.session(), s.session()
	c, d := mongo.NewSessionContext(ctx, first), mongo.NewSessionContext(ctx, other)
	must(t, first.StartTransaction())
	must(t, other.StartTransaction())
	must(t, s.add(c, "a", 1))
	s.fails(112, true, s.add(d, "a", 2))
	s.fails(251, true, second(s.number(d, "a")))
	must(t, other.AbortTransaction(ctx))
	s.fails(11000, false, second(s.things.InsertOne(c, bson.M{"_id": "b"})))
	must(t, first.AbortTransaction(ctx))
	for _, data := range []bson.D{{{"errorCode", 11602}}, {{"closeConnection", true}}} {
		must(t, first.StartTransaction())
		s.inject(1, "insert", data)
		s.fails(0, true, second(s.things.InsertOne(c, bson.M{"_id": "c"})))
		must(t, first.AbortTransaction(ctx))
	}
	equal(t, map[string]int32{"a": 0, "b": 0}, s.numbers())
}

func TestACommitThatNobodyAnswersIsUnknown(t *testing.T) {
	s := newScene(t)
	session := s.session()
	must(t, session.StartTransaction())
	must(t, s.add(mongo.NewSessionContext(ctx, session), "a", 1))
	s.inject(2, "commitTransaction", bson.D{{"closeConnection", true}})
	var failed mongo.CommandError
	equal(t, true, errors.As(session.CommitTransaction(ctx), &failed))
	equal(t, true, failed.HasErrorLabel(unknownCommit))
	equal(t, false, failed.HasErrorLabel(transient))
	must(t, session.CommitTransaction(ctx))
	equal(t, map[string]int32{"a": 1, "b": 0}, s.numbers())
}

func TestACausalSessionReadsAfterWhatAnotherOneWrote(t *testing.T) {
	s := newScene(t)
	writer, reader := s.session(), s.session()
	times := map[string]bool{}
	for i := int32(1); i <= 20; i++ {
		must(t, s.add(mongo.NewSessionContext(ctx, writer), "a", 1))
		must(t, reader.AdvanceClusterTime(writer.ClusterTime()))
		must(t, reader.AdvanceOperationTime(writer.OperationTime()))
		equal(t, i, value(s.number(mongo.NewSessionContext(ctx, reader), "a"))(t))
	}
	for _, find := range s.named("find") {
		times[find.Lookup("readConcern", "afterClusterTime").String()] = true
	}
	equal(t, 20, len(times))
}

func TestASnapshotSessionReadsOneMoment(t *testing.T) {
	s := newScene(t)
	c := mongo.NewSessionContext(ctx, s.session(options.Session().SetSnapshot(true)))
	equal(t, int32(0), value(s.number(c, "a"))(t))
	must(t, s.add(ctx, "a", 5))
	equal(t, int32(0), value(s.number(c, "a"))(t))
	var distinct []int32
	must(t, s.things.Distinct(c, "n", bson.D{}).Decode(&distinct))
	equal(t, []int32{0}, distinct)
	equal(t, int32(5), value(s.number(mongo.NewSessionContext(ctx, s.session(options.Session().SetSnapshot(true))), "a"))(t))
	_, err := s.named("find")[1].LookupErr("readConcern", "atClusterTime")
	must(t, err)
}

func TestAStreamShowsATransactionWhole(t *testing.T) {
	s := newScene(t)
	must(t, s.db.CreateCollection(ctx, "others"))
	stream := value(s.db.Watch(ctx, bson.A{}, options.ChangeStream().SetMaxAwaitTime(100*time.Millisecond)))(t)
	defer stream.Close(ctx)
	session := s.session()
	c := mongo.NewSessionContext(ctx, session)
	must(t, session.StartTransaction())
	must(t, second(s.things.InsertOne(c, bson.M{"_id": "c"})))
	must(t, second(s.db.Collection("others").InsertOne(c, bson.M{"_id": "d"})))
	must(t, second(s.things.DeleteOne(c, bson.M{"_id": "b"})))
	equal(t, false, stream.TryNext(ctx))
	must(t, session.CommitTransaction(ctx))
	must(t, second(s.things.InsertOne(ctx, bson.M{"_id": "e"})))
	var events []changed
	var ids []any
	for len(events) < 4 {
		events = append(events, next(t, stream))
		ids = append(ids, events[len(events)-1].DocumentKey["_id"])
	}
	equal(t, []any{"c", "d", "b", "e"}, ids)
	number := s.named("commitTransaction")[0].Lookup("txnNumber").Int64()
	for _, e := range events[:3] {
		equal(t, session.ID().Lookup("id"), e.Lsid.Lookup("id"))
		equal(t, number, e.TxnNumber)
		equal(t, events[0].ClusterTime, e.ClusterTime)
	}
	equal(t, bson.Raw(nil), events[3].Lsid)
	again := value(s.db.Watch(ctx, bson.A{}, options.ChangeStream().SetResumeAfter(events[0].ID)))(t)
	defer again.Close(ctx)
	for _, e := range events[1:] {
		equal(t, e.ID, next(t, again).ID)
	}
}

func TestTransactionsCreateCollectionsAndWhatIsRefused(t *testing.T) {
	s := newScene(t)
	session := s.session()
	_, err := session.WithTransaction(ctx, func(c context.Context) (any, error) {
		must(t, second(s.db.Collection("implicit").InsertOne(c, bson.M{"_id": 1})))
		return nil, s.db.CreateCollection(c, "explicit")
	})
	must(t, err)
	c := mongo.NewSessionContext(ctx, session)
	must(t, session.StartTransaction())
	must(t, second(s.db.Collection("never").InsertOne(c, bson.M{"_id": 1})))
	must(t, session.AbortTransaction(ctx))
	names := value(s.db.ListCollectionNames(ctx, bson.D{}))(t)
	sort.Strings(names)
	equal(t, []string{"explicit", "implicit", "things"}, names)
	for _, command := range []bson.D{{{"count", "things"}}, {{"drop", "things"}}, {{"listCollections", 1}}} {
		must(t, session.StartTransaction())
		must(t, s.add(c, "a", 1))
		s.fails(263, false, s.db.RunCommand(c, command).Err())
		must(t, session.AbortTransaction(ctx))
	}
	equal(t, map[string]int32{"a": 0, "b": 0}, s.numbers())
}

func TestWhatEndsASessionAbortsItsTransaction(t *testing.T) {
	s := newScene(t)
	open := func() (*mongo.Session, context.Context) {
		session := s.session()
		must(t, session.StartTransaction())
		c := mongo.NewSessionContext(ctx, session)
		must(t, s.add(c, "a", 1))
		return session, c
	}
	_, c := open()
	s.admin(bson.D{{"killAllSessions", bson.A{}}})
	s.fails(251, true, second(s.number(c, "a")))
	ended, c := open()
	s.admin(bson.D{{"endSessions", bson.A{ended.ID()}}})
	s.fails(251, true, second(s.number(c, "a")))
	closed, _ := open()
	closed.EndSession(ctx)
	must(t, s.add(ctx, "a", 10))
	equal(t, map[string]int32{"a": 10, "b": 0}, s.numbers())
}

func TestACommittedTransactionSurvivesKillMinusNine(t *testing.T) {
	s := newScene(t)
	kept, lost := s.session(), s.session()
	must(t, lost.StartTransaction())
	must(t, s.add(mongo.NewSessionContext(ctx, lost), "b", 1))
	must(t, kept.StartTransaction())
	must(t, s.add(mongo.NewSessionContext(ctx, kept), "a", 1))
	must(t, kept.CommitTransaction(ctx))
	s.server.kill()
	s.server.start()
	must(t, kept.CommitTransaction(ctx))
	s.fails(251, true, lost.CommitTransaction(ctx))
	equal(t, map[string]int32{"a": 1, "b": 0}, s.numbers())
}
