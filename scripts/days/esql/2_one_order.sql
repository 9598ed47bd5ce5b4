-- One transaction of the application writes three tables; each commit names it.
-- user: ann
-- transaction: order-1

insert into esql.a values (1, 'A1', 'first'), (2, 'A2', null);
insert into esql.b values ('b1', 9.50), ('b2', 12.00), ('b3', 7.00);
insert into esql.x values ('x1', 'Meyer', '1 High Street', 'b1');
