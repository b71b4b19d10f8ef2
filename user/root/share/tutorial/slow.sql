-- slow.sql: who has spent most. Much too slow: docs/tutorial.md finds out why.
select name, (select sum(price) from orders where customer = customers.id)
    as spent from customers order by spent desc, name limit 3;
