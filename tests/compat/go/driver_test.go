// The Go driver against `angelia serve`: daily work. Sessions and transactions are in transactions_test.go.
package compat

import (
	"fmt"
	"sort"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

type changed struct {
	ID            bson.Raw       `bson:"_id"`
	OperationType string         `bson:"operationType"`
	DocumentKey   bson.M         `bson:"documentKey"`
	ClusterTime   bson.Timestamp `bson:"clusterTime"`
	TxnNumber     int64          `bson:"txnNumber"`
	Lsid          bson.Raw       `bson:"lsid"`
}

func next(t testing.TB, stream *mongo.ChangeStream) changed {
	t.Helper()
	if !stream.Next(ctx) {
		t.Fatalf("the stream ended: %v", stream.Err())
	}
	var e changed
	must(t, stream.Decode(&e))
	return e
}

func TestInsertsFindsUpdatesDeletes(t *testing.T) {
	s := newScene(t)
	var documents []any
	for i := 0; i < 300; i++ {
		documents = append(documents, bson.M{"_id": i, "n": i % 7, "long": int64(1) << 40})
	}
	equal(t, 300, len(value(s.things.InsertMany(ctx, documents))(t).InsertedIDs))
	equal(t, int64(43), value(s.things.CountDocuments(ctx, bson.M{"n": 3}))(t))
	equal(t, int64(302), value(s.things.EstimatedDocumentCount(ctx))(t))
	var top []struct {
		ID   int `bson:"_id"`
		Long int64
	}
	must(t, value(s.things.Find(ctx, bson.M{"_id": bson.M{"$gte": 290}},
		options.Find().SetSort(bson.M{"_id": -1}).SetLimit(3).SetBatchSize(2)))(t).All(ctx, &top))
	equal(t, "[{299 1099511627776} {298 1099511627776} {297 1099511627776}]", fmt.Sprint(top))
	equal(t, int64(43), value(s.things.UpdateMany(ctx, bson.M{"n": 3}, bson.M{"$inc": bson.M{"n": 100}}))(t).ModifiedCount)
	equal(t, int64(43), value(s.things.DeleteMany(ctx, bson.M{"n": 103}))(t).DeletedCount)
	upserted := value(s.things.UpdateOne(ctx, bson.M{"_id": "up"}, bson.M{"$set": bson.M{"n": 1}}, options.UpdateOne().SetUpsert(true)))(t)
	equal(t, "up", upserted.UpsertedID)
	equal(t, int64(1), value(s.things.ReplaceOne(ctx, bson.M{"_id": "up"}, bson.M{"whole": 1}))(t).ModifiedCount)
	var after bson.M
	must(t, s.things.FindOneAndUpdate(ctx, bson.M{"_id": "up"}, bson.M{"$inc": bson.M{"whole": 2}},
		options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&after))
	equal(t, bson.M{"_id": "up", "whole": int32(3)}, after)
	equal(t, mongo.ErrNoDocuments, s.things.FindOneAndDelete(ctx, bson.M{"_id": "nobody"}).Err())
	bulk := value(s.things.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.M{"_id": "x"}),
		mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": "x"}).SetUpdate(bson.M{"$set": bson.M{"n": 1}}),
		mongo.NewDeleteOneModel().SetFilter(bson.M{"_id": "up"})}))(t)
	equal(t, "1 1 1", fmt.Sprint(bulk.InsertedCount, bulk.ModifiedCount, bulk.DeletedCount))
	var counted []bson.M
	must(t, value(s.things.Aggregate(ctx, bson.A{bson.M{"$match": bson.M{"_id": bson.M{"$lt": 10}}}, bson.M{"$count": "n"}}))(t).All(ctx, &counted))
	equal(t, []bson.M{{"n": int32(9)}}, counted)
}

func TestIndexesAreMadeListedDropped(t *testing.T) {
	s := newScene(t)
	must(t, second(s.things.Indexes().CreateMany(ctx, []mongo.IndexModel{
		{Keys: bson.D{{"name", 1}}, Options: options.Index().SetUnique(true).SetSparse(true)},
		{Keys: bson.D{{"a", 1}, {"b.c", -1}}},
		{Keys: bson.D{{"at", 1}}, Options: options.Index().SetExpireAfterSeconds(60)}})))
	must(t, s.things.Indexes().DropOne(ctx, "at_1"))
	var names []string
	for _, each := range value(s.things.Indexes().ListSpecifications(ctx))(t) {
		names = append(names, each.Name)
	}
	sort.Strings(names)
	equal(t, []string{"_id_", "a_1_b.c_-1", "name_1"}, names)
}

func second[T any](_ T, err error) error { return err }

func TestADuplicateKeyIsAnError(t *testing.T) {
	s := newScene(t)
	err := second(s.things.InsertOne(ctx, bson.M{"_id": "a"}))
	equal(t, true, mongo.IsDuplicateKeyError(err))
	s.fails(11000, false, err)
	err = second(s.things.InsertMany(ctx, []any{bson.M{"_id": 1}, bson.M{"_id": 1}, bson.M{"_id": 2}}, options.InsertMany().SetOrdered(false)))
	failed := err.(mongo.BulkWriteException).WriteErrors
	equal(t, "1 1", fmt.Sprint(len(failed), failed[0].Index))
	equal(t, int64(4), value(s.things.CountDocuments(ctx, bson.D{}))(t))
}

func TestAFailedWriteIsRetriedWithOneEffect(t *testing.T) {
	s := newScene(t)
	s.inject(1, "insert", bson.D{{"closeConnection", true}})
	must(t, second(s.things.InsertOne(ctx, bson.M{"_id": "c", "n": 0})))
	s.inject(1, "findAndModify", bson.D{{"errorCode", 10107}, {"errorLabels", bson.A{"RetryableWriteError"}}})
	must(t, s.things.FindOneAndUpdate(ctx, bson.M{"_id": "c"}, bson.M{"$inc": bson.M{"n": 1}}).Err())
	s.inject(1, "update", bson.D{{"writeConcernError", bson.M{"code": 91, "errmsg": "x", "errorLabels": bson.A{"RetryableWriteError"}}}})
	must(t, s.add(ctx, "c", 1))
	s.inject(1, "find", bson.D{{"closeConnection", true}})
	equal(t, map[string]int32{"a": 0, "b": 0, "c": 2}, s.numbers())
	s.inject(1, "insert", bson.D{{"errorCode", 8}})
	s.fails(8, false, second(s.things.InsertOne(ctx, bson.M{"_id": "d"})))
	equal(t, 3, len(s.numbers()))
}

func TestAWatchShowsEachKindOfEvent(t *testing.T) {
	s := newScene(t)
	stream := value(s.things.Watch(ctx, bson.A{}, options.ChangeStream().SetMaxAwaitTime(200*time.Millisecond)))(t)
	defer stream.Close(ctx)
	must(t, second(s.things.InsertOne(ctx, bson.M{"_id": "c", "n": 0})))
	must(t, s.add(ctx, "c", 1))
	must(t, second(s.things.ReplaceOne(ctx, bson.M{"_id": "c"}, bson.M{"b": 1})))
	must(t, second(s.things.DeleteOne(ctx, bson.M{"_id": "c"})))
	must(t, s.things.Drop(ctx))
	var seen []string
	for len(seen) == 0 || seen[len(seen)-1] != "invalidate" {
		seen = append(seen, next(t, stream).OperationType)
	}
	equal(t, []string{"insert", "update", "replace", "delete", "drop", "invalidate"}, seen)
}

func TestAWatchIsResumedAfterAFailedGetMore(t *testing.T) {
	s := newScene(t)
	stream := value(s.things.Watch(ctx, bson.A{}, options.ChangeStream().SetMaxAwaitTime(100*time.Millisecond)))(t)
	defer stream.Close(ctx)
	for i, data := range []bson.D{{{"errorCode", 10107}}, {{"errorCode", 91}}, {{"closeConnection", true}}} {
		s.admin(bson.D{{"configureFailPoint", "failGetMoreAfterCursorCheckout"}, {"mode", bson.D{{"times", 1}}}, {"data", data}})
		must(t, second(s.things.InsertOne(ctx, bson.M{"_id": int32(i)})))
		equal(t, int32(i), next(t, stream).DocumentKey["_id"])
	}
	equal(t, 4, len(s.named("aggregate")))
}

func TestAWatchIsResumedOverKillMinusNine(t *testing.T) {
	s := newScene(t)
	stream := value(s.things.Watch(ctx, bson.A{}, options.ChangeStream().SetMaxAwaitTime(200*time.Millisecond)))(t)
	defer stream.Close(ctx)
	var documents []any
	for i := int32(0); i < 10; i++ {
		documents = append(documents, bson.M{"_id": i})
	}
	must(t, second(s.things.InsertMany(ctx, documents)))
	var seen []int32
	for len(seen) < 4 {
		seen = append(seen, next(t, stream).DocumentKey["_id"].(int32))
	}
	s.server.kill()
	s.server.start()
	for tries := 0; ; tries++ { // the first writes may meet connections that died with the old server
		err := second(s.things.InsertOne(ctx, bson.M{"_id": int32(10)}))
		if err == nil || mongo.IsDuplicateKeyError(err) {
			break
		}
		if tries > 20 {
			t.Fatal(err)
		}
	}
	for len(seen) < 11 {
		seen = append(seen, next(t, stream).DocumentKey["_id"].(int32))
	}
	equal(t, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, seen)
}
