-- orders.sql: a shop's data: 300 customers, 4,000 orders.
create table customers(id integer primary key, name text);
create table orders(id integer primary key, customer integer, price integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 300)
    insert into customers select i, 'customer ' || i from n;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 4000)
    insert into orders select i, i * 7919 % 300 + 1, i * 31 % 500 from n;
