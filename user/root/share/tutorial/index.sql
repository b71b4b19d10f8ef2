-- index.sql: what makes slow.sql fast.
create index orders_of on orders(customer);
