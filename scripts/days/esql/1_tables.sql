-- The empty main tables, with foreign keys from x to a and b.
-- user: owner

create database if not exists esql;

create table esql.a (
    a_id bigint not null,
    code string not null,
    label string
) using delta
tblproperties ('delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true');

create table esql.b (
    b_id bigint not null,
    price decimal(10, 2)
) using delta
tblproperties ('delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true');

create table esql.x (
    x_id bigint not null,
    a_id bigint,
    b_id bigint,
    pieces int
) using delta
tblproperties ('delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true');
