-- The empty main tables. x is the table X of the documentation: its b_id refers to b.
-- user: owner

create database if not exists esql;

create table esql.a (
    a_id bigint not null,
    code string not null,
    label string
) using delta
tblproperties ('delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true');

create table esql.b (
    _id string not null,
    price decimal(10, 2)
) using delta
tblproperties ('delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true');

create table esql.x (
    _id string not null,
    name string not null,
    address string,
    b_id string
) using delta
tblproperties ('delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true');
